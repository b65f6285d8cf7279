// Many pictures: all of them complete, or named with a reason.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/apps/upscale_command.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class UpscaleBatch : public UpscaleCommand {
 protected:
  UpscaleBatch() { fs::create_directory(in_); }

  // A picture of its own for each name.
  Picture Make(const std::string& name, std::int64_t side = 12) {
    Picture picture =
        NoisePicture({.width = side, .height = side + 1}, static_cast<std::uint32_t>(++made_));
    WritePicture(in_ / name, FormatOfExtension(name).value(), picture);
    return picture;
  }
  void MakeMany(int count, std::int64_t side) {
    for (int i = 0; i < count; ++i) Make(StrCat("p", i, i % 2 == 0 ? ".png" : ".bmp"), side);
  }

  // Waits until the output folder holds so many names, or the program has ended.
  void AwaitOutputs(std::size_t count) const {
    for (int i = 0; i < 3000 && Tree(out_).size() < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  // Bytes of all files, hidden ones too.
  static std::map<std::string, std::string> Tree(const fs::path& folder) {
    std::map<std::string, std::string> files;
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
      if (entry.is_regular_file(error))
        files[entry.path().lexically_relative(folder).string()] = ReadBytes(entry.path());
    }
    return files;
  }

  fs::path in_ = folder_ / "in", out_ = folder_ / "out";
  int made_ = 0;
};

TEST_F(UpscaleBatch, ThreeHundredGoodAndBadFiles) {
  std::map<std::string, Picture> good;
  for (int i = 0; i < 300; ++i) {
    const std::string name = StrCat("f", i);
    switch (i % 10) {
      case 0:
        WriteBytes(in_ / (name + ".png"), ReadBytes(input_).substr(0, 500));
        break;
      case 1:
        WriteBytes(in_ / (name + ".jpg"), "no picture");
        break;
      case 2:
        fs::copy_file(input_, in_ / ("." + name + ".png"));
        break;
      case 3:
        WriteBytes(in_ / (name + ".txt"), "notes");
        break;
      default:
        good.emplace(name, Make(name + (i % 2 == 0 ? ".png" : ".bmp")));
    }
  }
  const ProgramResult result = Upscale({in_.string(), out_.string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("upscale: 180 done, 60 skipped (30 hidden, 30 no pictures), 60 failed"));
  // Each failure when it happens, and all of them at the end.
  const std::string report = result.err.substr(result.err.find("upscale: 180 done"));
  EXPECT_EQ(Lines(report), 61);
  EXPECT_THAT(report, HasSubstr("f10.png: the file ends too soon"));
  EXPECT_THAT(report, HasSubstr("f11.jpg: "));
  EXPECT_EQ(Lines(result.err), 180 + 60 + 61);
  EXPECT_EQ(Tree(out_).size(), 180u);
  for (const auto& [name, picture] : good) {
    const bool png = fs::exists(out_ / (name + ".png"));
    ExpectDoubled(ReadPicture(out_ / (name + (png ? ".png" : ".bmp"))).picture, picture);
  }
}

TEST_F(UpscaleBatch, AFileAndAFolderGiveTheSameBytes) {
  std::map<std::string, std::string> alone;
  for (const char* name : {"a.png", "b.bmp", "c.jpg", "d.webp", "e.tif", "f.ppm"}) {
    Make(name, 80);
    ASSERT_EQ(Upscale({(in_ / name).string(), output_ + name}).exit_code, 0);
    alone[name] = ReadBytes(output_ + name);
  }
  for (const char* workers : {"1", "1:1:1", "3:2:3"}) {
    const ProgramResult result =
        Upscale({in_.string(), out_.string(), "-j", workers, "--overwrite", "--threads", "4"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(Tree(out_), alone) << workers;
  }
  // One after the other, where the memory is for one.
  fs::remove_all(out_);
  EXPECT_EQ(Upscale({in_.string(), out_.string(), "--memory", "1"}).exit_code, 0);
  EXPECT_EQ(Tree(out_), alone);
}

TEST_F(UpscaleBatch, FilesOfAllKindsGoIntoAFolder) {
  const Picture a = Make("a.PNG"), b = Make("b.bmp");
  const ProgramResult result = Upscale({(in_ / "a.PNG").string(), (in_ / "b.bmp").string(),
                                        Path("none.png"), out_.string() + "/", "--format", "png"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("none.png: "));
  EXPECT_THAT(result.err, HasSubstr("upscale: 2 done, 0 skipped, 1 failed"));
  ExpectDoubled(ReadPicture(out_ / "a.PNG").picture, a);
  ExpectDoubled(ReadPicture(out_ / "b.png").picture, b);
  EXPECT_EQ(Tree(out_).size(), 2u);
}

TEST_F(UpscaleBatch, RecursionKeepsTheTreeAndLinksEnd) {
  fs::create_directories(in_ / "sub/deep");
  const Picture top = Make("a.png"), deep = Make("sub/deep/a.png");
  fs::create_directory_symlink("..", in_ / "sub/up");
  const ProgramResult flat = Upscale({in_.string(), out_.string()});
  EXPECT_EQ(flat.exit_code, 0) << flat.err;
  EXPECT_EQ(Tree(out_).size(), 1u);
  EXPECT_THAT(flat.err, HasSubstr("1 done, 1 skipped (1 subfolders), 0 failed"));
  const ProgramResult all = Upscale({in_.string(), out_.string(), "-r", "--skip-existing"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_THAT(
      all.err,
      HasSubstr("1 done, 2 skipped (1 up to date, 1 links to folders read already), 0 failed"));
  EXPECT_EQ(Tree(out_).size(), 2u);
  ExpectDoubled(ReadPicture(out_ / "a.png").picture, top);
  ExpectDoubled(ReadPicture(out_ / "sub/deep/a.png").picture, deep);
}

TEST_F(UpscaleBatch, TwoInputsForOneOutputStopEverything) {
  Make("a.png");
  Make("a.bmp");
  Make("b.png");
  const ProgramResult result = Upscale({in_.string(), out_.string(), "--format", "png"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("a.png"));
  EXPECT_THAT(result.err, HasSubstr("a.bmp"));
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(UpscaleBatch, OutputsThatExist) {
  const Picture a = Make("a.png"), b = Make("b.png"), c = Make("c.png");
  fs::create_directory(out_);
  WriteBytes(out_ / "b.png", "old");
  const std::vector<std::string> command = {in_.string(), out_.string()};
  const auto with = [&](const std::string& option) {
    return Upscale({in_.string(), out_.string(), option});
  };
  const ProgramResult stopped = Upscale(command);
  EXPECT_EQ(stopped.exit_code, 2);
  EXPECT_THAT(stopped.err, HasSubstr("b.png"));
  EXPECT_EQ(Tree(out_).size(), 1u);

  EXPECT_EQ(with("--skip-existing").exit_code, 0);
  EXPECT_EQ(ReadBytes(out_ / "b.png"), "old");
  ExpectDoubled(ReadPicture(out_ / "a.png").picture, a);
  // An input that is newer is done again.
  fs::last_write_time(in_ / "b.png", fs::last_write_time(out_ / "b.png") + std::chrono::hours(1));
  const ProgramResult newer = with("--skip-existing");
  EXPECT_THAT(newer.err, HasSubstr("1 done, 2 skipped (2 up to date), 0 failed"));
  ExpectDoubled(ReadPicture(out_ / "b.png").picture, b);

  WriteBytes(out_ / "c.png", "old");
  EXPECT_EQ(with("--overwrite").exit_code, 0);
  ExpectDoubled(ReadPicture(out_ / "c.png").picture, c);
}

TEST_F(UpscaleBatch, NamesByPattern) {
  const Picture picture = Make("a.bmp");
  const auto file = (in_ / "a.bmp").string(), folder = out_.string() + "/";
  ASSERT_EQ(Upscale({file, folder, "--suffix", "_large"}).exit_code, 0);
  ASSERT_EQ(Upscale({file, folder, "--name", "{stem}_{scale}x{ext}"}).exit_code, 0);
  ASSERT_EQ(Upscale({file, folder, "--name", "{scale}.png", "-s", "1.50"}).exit_code, 0);
  ExpectDoubled(ReadPicture(out_ / "a_large.bmp").picture, picture);
  ExpectDoubled(ReadPicture(out_ / "a_2x.bmp").picture, picture);
  EXPECT_EQ(ReadPicture(out_ / "1.5.png").picture.width(), 18);
}

TEST_F(UpscaleBatch, NamesOfAnyBytesGoThroughAFolder) {
  std::map<std::string, Picture> made;
  for (const std::string name : {"with space.png", "qu'o\"te.png", "new\nline.png", "-dash.png",
                                 "\xFF\xFE.png", "back\\slash.PNG"}) {
    made.emplace(name, Make(name));
  }
  const std::string longest = std::string(251, 'n') + ".png";
  made.emplace(longest, Make(longest));
  const ProgramResult result = Upscale({in_.string(), out_.string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Tree(out_).size(), made.size());
  for (const auto& [name, picture] : made) ExpectDoubled(ReadPicture(out_ / name).picture, picture);
  EXPECT_THAT(result.err, HasSubstr("new\\nline.png  12x13 -> 24x26, "));
  EXPECT_THAT(result.err, HasSubstr("\\xFF\\xFE.png"));
}

TEST_F(UpscaleBatch, ADiskThatIsFullFailsOnlyWhatDoesNotFit) {
  const Picture small = Make("a.bmp", 10);
  Make("b.bmp", 100);
  const Picture last = Make("c.bmp", 10);
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit little = old;
  little.rlim_cur = 10000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const ProgramResult result = Upscale({in_.string(), out_.string()});
  std::signal(SIGXFSZ, old_handler);
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("out/b.bmp: cannot write: File too large\n"));
  EXPECT_EQ(Tree(out_).size(), 2u);
  ExpectDoubled(ReadPicture(out_ / "a.bmp").picture, small);
  ExpectDoubled(ReadPicture(out_ / "c.bmp").picture, last);
}

TEST_F(UpscaleBatch, GoesOnAfterItWasKilled) {
  MakeMany(40, 250);
  ASSERT_EQ(Upscale({in_.string(), Path("undisturbed")}).exit_code, 0);
  for (const int signal : {SIGKILL, SIGTERM}) {
    fs::remove_all(out_);
    RunningProgram program(WithModel({in_.string(), out_.string()}));
    AwaitOutputs(7);
    ::kill(program.pid(), signal);
    const ProgramResult killed = program.Wait();
    ASSERT_EQ(killed.signal, signal == SIGKILL ? SIGKILL : 0);
    ASSERT_EQ(killed.exit_code, signal == SIGKILL ? -1 : 130);
    const std::size_t left = Tree(out_).size();
    EXPECT_LT(left, 40u);
    if (signal == SIGTERM) {
      // One that each of the two workers had just put in its place may not have been counted.
      EXPECT_THAT(killed.err,
                  testing::AnyOf(HasSubstr(StrCat("interrupted: ", left, " done, ")),
                                 HasSubstr(StrCat("interrupted: ", left - 1, " done, ")),
                                 HasSubstr(StrCat("interrupted: ", left - 2, " done, "))));
      for (const auto& [name, bytes] : Tree(out_)) EXPECT_NE(name[0], '.');
    }
    const ProgramResult again = Upscale({in_.string(), out_.string(), "--skip-existing"});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(Tree(out_), Tree(folder_ / "undisturbed"));
  }
}

TEST_F(UpscaleBatch, ADryRunFailsWhereTheRunWould) {
  Make("a.png", 10);
  std::filesystem::create_directories(folder_ / "taken" / "a.png");
  WriteBytes(folder_ / "file", "no folder");
  for (const std::string& output :
       {Path("taken/"), Path("missing/a.png"), Path("file/"), Path("file/deeper/")}) {
    const std::string input = (in_ / "a.png").string();
    const ProgramResult dry = Upscale({input, output, "--dry-run", "--overwrite"});
    EXPECT_NE(dry.exit_code, 0) << output;
    EXPECT_NE(Upscale({input, output, "--overwrite"}).exit_code, 0) << output;
  }
  EXPECT_EQ(Upscale({(in_ / "a.png").string(), Path("new/deeper/"), "--dry-run"}).exit_code, 0);
}

TEST_F(UpscaleBatch, ADryRunWritesNothing) {
  Make("a.png");
  Make("b.png", 50);
  const ProgramResult result =
      Upscale({in_.string(), out_.string(), "--dry-run", "--tile", "24", "--overlap", "0"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(fs::exists(out_));
  EXPECT_EQ(Lines(result.out), 2);
  EXPECT_THAT(result.out, HasSubstr((in_ / "b.png").string() + " -> " + (out_ / "b.png").string() +
                                    "  50x51 -> 100x102, about 1 MB, "));
  EXPECT_THAT(result.err, HasSubstr("2 would be written, 0 skipped, 0 failed"));

  WriteBytes(in_ / "c.png", "no picture");
  const ProgramResult bad = Upscale({in_.string(), out_.string(), "--dry-run"});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_EQ(Lines(bad.out), 2);
  EXPECT_THAT(bad.err, HasSubstr("c.png: "));
  EXPECT_FALSE(fs::exists(out_));
}

}  // namespace
}  // namespace tessera
