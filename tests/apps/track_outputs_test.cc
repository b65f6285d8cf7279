// What a run leaves: video, pictures, records, plot, steps, numbers.
#include <opencv2/imgproc.hpp>

#include "ops/error.h"
#include "pipeline/tracking/ground_truth.h"
#include "pipeline/tracking/track_metrics.h"
#include "pipeline/tracking/track_steps.h"
#include "tests/apps/track_command.h"
#include "tests/json.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr int kFrames = 30;

class TrackOutput : public TrackCommand {
 protected:
  TrackOutput() { WriteSquareVideo(video_, kFrames); }

  void WritePictures(const std::string& folder, int frames, const std::string& extension) {
    std::filesystem::create_directory(folder);
    for (int i = 0; i < frames; ++i) {
      ASSERT_TRUE(cv::imwrite(StrCat(folder, "/shot", i, extension), SquareFrame(i)));
    }
  }
  // That the program follows the square.
  static void ExpectFollowed(const std::vector<CsvRow>& rows) {
    for (const CsvRow& row : rows) {
      EXPECT_GT(Overlap(row.box, SquareBox(row.frame)), 0.4) << row.frame;
      EXPECT_EQ(row.lost, 0) << row.frame;
    }
  }
};

TEST_F(TrackOutput, TheVideoHasTheInputsFramesSizeAndRate) {
  const ProgramResult result = Track(WithInit({video_, Path("out.mp4")}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("track: 30 frames of 320x240"));
  const VideoContent in = ReadVideo(video_, true), out = ReadVideo(Path("out.mp4"), true);
  EXPECT_EQ(out.frames, kFrames);
  EXPECT_EQ(out.size, cv::Size(320, 240));
  EXPECT_NEAR(out.rate, 20, 1e-6);
  // Every frame is its own one, with a box drawn into it.
  for (std::size_t i = 0; i < kFrames; ++i) {
    cv::Mat difference;
    cv::absdiff(in.pictures[i], out.pictures[i], difference);
    EXPECT_LT(cv::mean(difference)[0], 12) << i;
    double most = 0;
    cv::minMaxLoc(difference.reshape(1), nullptr, &most);
    EXPECT_GT(most, 60) << i;
  }
}

TEST_F(TrackOutput, EveryNthFrameMakesASlowerVideo) {
  ASSERT_EQ(Track(WithInit({video_, Path("out.mkv"), "--every", "3"})).exit_code, 0);
  const VideoContent out = ReadVideo(Path("out.mkv"));
  EXPECT_EQ(out.frames, 10);
  EXPECT_NEAR(out.rate, 20.0 / 3, 0.01);
}

TEST_F(TrackOutput, CsvAndJsonSayTheSame) {
  const ProgramResult result =
      Track(WithInit({video_, "--csv", Path("b.csv"), "--json", Path("b.json"), "--quiet"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const std::vector<CsvRow> rows = ReadRows(ReadBytes(Path("b.csv")));
  ASSERT_THAT(rows, SizeIs(kFrames));
  ExpectFollowed(rows);
  EXPECT_EQ(rows[0].box, SquareBox(0));
  EXPECT_EQ(rows[0].score, 1);
  const JsonValue json = ReadJson(Path("b.json"));
  ASSERT_EQ(json.list_value().values_size(), kFrames);
  for (int i = 0; i < kFrames; ++i) {
    const JsonValue& object = json.list_value().values(i);
    const CsvRow& row = rows[static_cast<std::size_t>(i)];
    EXPECT_EQ(row.frame, i);
    EXPECT_NEAR(row.time, i / 20.0, 1e-5);
    EXPECT_EQ(Number(object, "frame"), i);
    EXPECT_EQ(Number(object, "time"), row.time);
    EXPECT_EQ(Number(object, "x"), row.box.x);
    EXPECT_EQ(Number(object, "y"), row.box.y);
    EXPECT_EQ(Number(object, "w"), row.box.width);
    EXPECT_EQ(Number(object, "h"), row.box.height);
    EXPECT_EQ(Number(object, "score"), row.score);
    EXPECT_EQ(Field(object, "lost").bool_value(), row.lost == 1);
  }
}

TEST_F(TrackOutput, RecordsOnStandardOutput) {
  const ProgramResult csv = Track(WithInit({video_, "--csv", "-"}));
  EXPECT_THAT(ReadRows(csv.out), SizeIs(kFrames));
  const ProgramResult json = Track(WithInit({video_, "--json", "-"}));
  EXPECT_EQ(ParseJson(json.out).list_value().values_size(), kFrames);
  const std::string full =
      StrCat("'", TESSERA_BIN_DIR, "/track' '", video_, "' --init 30,40,40,40 --model '", backbone_,
             "' --head '", head_, "' --variant v1 --csv - >/dev/full 2>/dev/null");
  const int status = std::system(full.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

TEST_F(TrackOutput, OneThreadAndSeveralGiveTheSame) {
  const ProgramResult one = Track(WithInit({video_, "--csv", "-", "--threads", "1"}));
  EXPECT_EQ(one.out, Track(WithInit({video_, "--csv", "-", "--threads", "3"})).out);
}

TEST_F(TrackOutput, FromPicturesIntoAFolder) {
  const std::string in = Path("in"), out = Path("out");
  WritePictures(in, 12, ".png");
  const ProgramResult result = Track(WithInit({in, out, "--csv", "-"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (int i = 0; i < 12; ++i) {
    const cv::Mat picture = cv::imread(StrCat(out, "/shot", i, ".png"));
    ASSERT_EQ(picture.size(), cv::Size(320, 240)) << i;
    EXPECT_GT(cv::norm(picture, SquareFrame(i), cv::NORM_INF), 60) << i;
  }
  const std::vector<CsvRow> rows = ReadRows(result.out);
  ASSERT_THAT(rows, SizeIs(12));
  ExpectFollowed(rows);
  EXPECT_NEAR(rows[5].time, 0.2, 1e-9);  // 25 a second, for want of better knowledge
}

TEST_F(TrackOutput, PicturesHaveTheRateThatIsGiven) {
  const std::string in = Path("in");
  WritePictures(in, 8, ".jpg");
  const ProgramResult result = Track(
      WithInit({in + "/shot%d.jpg", Path("o.mp4"), "--csv", "-", "--fps", "10", "--every", "2"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const VideoContent out = ReadVideo(Path("o.mp4"));
  EXPECT_EQ(out.frames, 4);
  EXPECT_NEAR(out.rate, 5, 1e-6);
  EXPECT_NEAR(ReadRows(result.out).at(3).time, 0.6, 1e-9);
}

TEST_F(TrackOutput, PicturesOfOtherKindsAndSizes) {
  const std::string in = Path("in");
  std::filesystem::create_directory(in);
  for (int i = 0; i < 9; ++i) {
    cv::Mat frame = SquareFrame(i, i < 6 ? cv::Size(320, 240) : cv::Size(280, 260));
    if (i % 3 == 1) cv::cvtColor(frame, frame, cv::COLOR_BGR2GRAY);
    if (i % 3 == 2) frame.convertTo(frame, CV_16U, 257);
    ASSERT_TRUE(cv::imwrite(StrCat(in, "/", i, ".png"), frame));
  }
  const ProgramResult result = Track(WithInit({in, Path("o.mp4"), "--csv", "-"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<CsvRow> rows = ReadRows(result.out);
  ASSERT_THAT(rows, SizeIs(9));
  ExpectFollowed(rows);
  const VideoContent out = ReadVideo(Path("o.mp4"));
  EXPECT_EQ(out.frames, 9);
  EXPECT_EQ(out.size, cv::Size(320, 240));
}

TEST_F(TrackOutput, ThePlotIsAPictureOfTheRun) {
  ASSERT_EQ(Track(WithInit({video_, "--plot", Path("p.png")})).exit_code, 0);
  const cv::Mat plot = cv::imread(Path("p.png"));
  ASSERT_FALSE(plot.empty());
  EXPECT_GT(plot.rows, plot.cols / 2);
  cv::Mat deviation, mean;
  cv::meanStdDev(plot, mean, deviation);
  EXPECT_GT(deviation.at<double>(0), 5);
  ExpectFailure(2, {"p.xyz"}, WithInit({video_, "--plot", Path("p.xyz")}));
}

TEST_F(TrackOutput, NumbersAgainstGroundTruthAreThoseOfMeasure) {
  std::string truth;
  for (int i = 0; i < kFrames; ++i) {
    const Box box = SquareBox(i);
    truth += i % 7 == 6 ? "0,0,0,0\n" : StrCat(box.x + 3, "\t", box.y, "\t40\t44\n");
  }
  WriteBytes(Path("gt.txt"), truth);
  const ProgramResult result =
      Track(WithInit({video_, "--csv", Path("b.csv"), "--groundtruth", Path("gt.txt")}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<TrackRecord> records;
  for (const CsvRow& row : ReadRows(ReadBytes(Path("b.csv")))) {
    records.push_back({row.frame, row.time, row.box, row.score, row.lost != 0});
  }
  const TrackMetrics want = Measure(records, ReadGroundTruth(Path("gt.txt")));
  EXPECT_EQ(want.frames, 26);
  const auto printed = [&](const std::string& name) {
    const std::size_t at = result.out.find(name + ": ");
    EXPECT_NE(at, std::string::npos) << result.out;
    return std::stod(result.out.substr(at + name.size() + 2));
  };
  EXPECT_EQ(printed("frames with a known box"), 26);
  EXPECT_NEAR(printed("success AUC"), want.success_auc, 1e-4);
  EXPECT_NEAR(printed("precision at 20 px"), want.precision_20, 1e-4);
  EXPECT_NEAR(printed("mean overlap"), want.mean_overlap, 1e-4);
  EXPECT_GT(want.success_auc, 0.3);

  // They do not get between the records.
  const ProgramResult both =
      Track(WithInit({video_, "--csv", "-", "--groundtruth", Path("gt.txt")}));
  EXPECT_EQ(both.out, ReadBytes(Path("b.csv")));
  EXPECT_THAT(both.err, HasSubstr("success AUC: "));
}

TEST_F(TrackOutput, WithoutAKnownBoxThereAreNoNumbers) {
  WriteBytes(Path("gt.csv"), "frame,x,y,w,h\n100,30,40,40,40\n");
  const ProgramResult result = Track(WithInit({video_, "--groundtruth", Path("gt.csv")}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("gt.csv: has no box for any frame of the run"));
}

// The weights are random, so that nothing is followed.
TEST_F(TrackOutput, NetworksWithBothTowersAreDescribedByAFile) {
  const std::string network = Path("two.onnx");
  ASSERT_EQ(RunProgram({"build-model", "siamese-two-tower", network}).exit_code, 0);
  const std::string config =
      StrCat(TESSERA_SOURCE_DIR, "/samples/tracker-configs/siamese-two-tower.cfg");
  const ProgramResult result = RunProgram(
      WithInit({"track", video_, "--csv", "-", "--model", network, "--variant", config}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(ReadRows(result.out), SizeIs(kFrames));
  WriteBytes(Path("wrong.cfg"), "search_size = much\n");
  const ProgramResult wrong =
      RunProgram(WithInit({"track", video_, "--model", network, "--variant", Path("wrong.cfg")}));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("wrong.cfg"));
  const ProgramResult alone = RunProgram(WithInit({"track", video_, "--model", network}));
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("two.onnx"));
}

// Steps from a reference give the reference's own steps again, and steps from other states others.
TEST_F(TrackOutput, StepsBeginWhereTheReferenceSays) {
  ASSERT_EQ(Track(WithInit({video_, "--steps-out", Path("a.csv")})).exit_code, 0);
  const std::vector<TrackStep> free = ReadSteps(Path("a.csv"));
  ASSERT_THAT(free, SizeIs(kFrames - 1));
  EXPECT_EQ(free[0].frame, 1);
  EXPECT_EQ(free[0].before.cx, 49.5);
  EXPECT_EQ(free[0].before.width, 40);
  for (std::size_t i = 1; i < free.size(); ++i) {
    EXPECT_NEAR(free[i].before.cx, free[i - 1].after.cx, 1e-6);
  }
  std::vector<TrackStep> moved(free.begin(), free.begin() + 10);
  for (TrackStep& step : moved) step.before.cx += 6;
  WriteSteps(Path("moved.csv"), moved, false);
  const ProgramResult result =
      Track(WithInit({video_, "--steps-in", Path("moved.csv"), "--steps-out", Path("b.csv")}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<TrackStep> steps = ReadSteps(Path("b.csv"));
  ASSERT_THAT(steps, SizeIs(10));  // those of the reference
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_NEAR(steps[i].before.cx, free[i].before.cx + 6, 1e-6);
    EXPECT_EQ(steps[i].step.window.x, free[i].step.window.x + 6);
  }
  const ProgramResult short_run = Track(WithInit(
      {video_, "--end", "5", "--steps-in", Path("moved.csv"), "--steps-out", Path("c.csv")}));
  EXPECT_THAT(short_run.err, HasSubstr("4 of its 10 steps"));
}

TEST_F(TrackOutput, LostTargetsAreCounted) {
  const std::string in = Path("in");
  WritePictures(in, 10, ".png");
  for (int i = 10; i < 40; ++i) {
    ASSERT_TRUE(cv::imwrite(StrCat(in, "/shot", i, ".png"),
                            cv::Mat(240, 320, CV_8UC3, cv::Scalar(60, 50, 40))));
  }
  const ProgramResult result = Track(WithInit({in, "--csv", "-"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int lost = 0;
  for (const CsvRow& row : ReadRows(result.out)) lost += row.lost;
  EXPECT_GT(lost, 10);
  EXPECT_THAT(result.err, HasSubstr(StrCat(lost, " without the target")));
}

}  // namespace
}  // namespace tessera
