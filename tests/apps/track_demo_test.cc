// README's command on the sample clip, as it stands there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <opencv2/videoio.hpp>
#include <regex>
#include <string>

#include "tests/shared_files.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// The indented line with that beginning, and those that it goes on with.
std::string CommandOfReadme(const std::string& beginning) {
  const std::string readme = ReadBytes(fs::path(TESSERA_SOURCE_DIR) / "README.md");
  const std::size_t begin = readme.find("    " + beginning);
  if (begin == std::string::npos) return "";
  std::size_t end = readme.find('\n', begin);
  while (readme[end - 1] == '\\') end = readme.find('\n', end + 1);
  return readme.substr(begin, end - begin);
}

TEST(TrackDemo, ReadmesCommandFollowsTheBalloon) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "needs the shared folder's networks";
  const std::string command = CommandOfReadme("build/bin/track samples/balloon.mp4");
  ASSERT_FALSE(command.empty()) << "not in README.md";

  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "build");
  fs::create_directory_symlink(TESSERA_BIN_DIR, folder.path() / "build/bin");
  fs::create_directory_symlink(fs::path(TESSERA_SOURCE_DIR) / "samples", folder.path() / "samples");
  const fs::path networks = *shared / "models/nanotrack";
  fs::create_symlink(networks / "nanotrackv2_backbone.onnx",
                     folder.path() / "nanotrack_backbone_sim.onnx");
  fs::create_symlink(networks / "nanotrackv2_head.onnx", folder.path() / "nanotrack_head_sim.onnx");
  const std::string out = folder.path() / "stdout.txt";
  const std::string line = "cd '" + folder.path().string() + "' && " + command + " > stdout.txt";
  ASSERT_EQ(std::system(line.c_str()), 0) << line;

  std::smatch match;
  const std::string numbers = ReadBytes(out);
  ASSERT_TRUE(std::regex_search(numbers, match, std::regex("mean overlap: ([0-9.]+)"))) << numbers;
  EXPECT_GT(std::stod(match[1]), 0.75);
  cv::VideoCapture video((folder.path() / "build/balloon.mp4").string());
  EXPECT_EQ(video.get(cv::CAP_PROP_FRAME_COUNT), 250);
  EXPECT_EQ(video.get(cv::CAP_PROP_FRAME_WIDTH), 640);
  EXPECT_EQ(video.get(cv::CAP_PROP_FRAME_HEIGHT), 360);
  EXPECT_NEAR(video.get(cv::CAP_PROP_FPS), 25, 1e-6);
  EXPECT_TRUE(fs::exists(folder.path() / "build/balloon.png"));
}

}  // namespace
}  // namespace tessera
