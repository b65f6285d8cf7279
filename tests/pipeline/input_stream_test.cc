// Pictures from pipes and standard input.
#include "pipeline/input_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "tests/pipeline/codec_test.h"

namespace tessera {
namespace {

using testing::HasSubstr;

constexpr struct {
  const char* name;
  ImageFormat format;
} kKinds[] = {{"a.png", ImageFormat::kPng},   {"a.jpg", ImageFormat::kJpeg},
              {"a.webp", ImageFormat::kWebp}, {"a.tif", ImageFormat::kTiff},
              {"a.bmp", ImageFormat::kBmp},   {"a.ppm", ImageFormat::kPnm}};

class InputStream : public CodecTest {
 protected:
  // A named pipe that gets these bytes, in small parts, as soon as somebody reads it.
  std::filesystem::path Fifo(const std::string& bytes) {
    const std::filesystem::path path = folder_ / ("fifo" + std::to_string(next_++));
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    writers_.emplace_back([path, bytes] {
      const int fd = ::open(path.c_str(), O_WRONLY);
      for (std::size_t at = 0; at < bytes.size(); at += 1000) {
        const std::size_t size = std::min<std::size_t>(1000, bytes.size() - at);
        if (::write(fd, bytes.data() + at, size) < 0) break;
      }
      ::close(fd);
    });
    return path;
  }

 private:
  int next_ = 0;
  std::vector<std::jthread> writers_;
};

// Standard input is that file while this lives.
class StandardInput {
 public:
  explicit StandardInput(const std::filesystem::path& path) : saved_(::dup(STDIN_FILENO)) {
    const int fd = ::open(path.c_str(), O_RDONLY);
    ::dup2(fd, STDIN_FILENO);
    ::close(fd);
  }
  ~StandardInput() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

TEST_F(InputStream, EveryFormatIsReadFromAPipe) {
  const Picture picture = NoisePicture({.width = 70, .height = 50});
  for (const auto& kind : kKinds) {
    WritePicture(folder_ / kind.name, kind.format, picture);
    const Picture from_file = ReadPicture(folder_ / kind.name).picture;
    const std::string bytes = ReadBytes(folder_ / kind.name);
    EXPECT_TRUE(SamePixels(ReadPicture(Fifo(bytes)).picture, from_file)) << kind.name;
    const StandardInput pipe(Fifo(bytes));
    EXPECT_TRUE(SamePixels(ReadPicture("-").picture, from_file)) << kind.name;
  }
}

TEST_F(InputStream, StandardInputMayBeAFile) {
  const Picture picture = NoisePicture({.width = 30, .height = 20});
  for (const auto& kind : kKinds) {
    if (kind.format == ImageFormat::kJpeg) continue;
    WritePicture(folder_ / kind.name, kind.format, picture);
    const StandardInput file(folder_ / kind.name);
    EXPECT_TRUE(SamePixels(ReadPicture("-").picture, picture)) << kind.name;
  }
}

// What stands before the picture has been read by somebody else.
TEST_F(InputStream, StandardInputBeginsWhereItIs) {
  const Picture picture = NoisePicture({.width = 30, .height = 20});
  for (const auto& kind : kKinds) {
    if (kind.format == ImageFormat::kJpeg) continue;
    WritePicture(folder_ / kind.name, kind.format, picture);
    WriteBytes(folder_ / "b", "a line\n" + ReadBytes(folder_ / kind.name));
    const StandardInput file(folder_ / "b");
    ASSERT_EQ(::lseek(STDIN_FILENO, 7, SEEK_SET), 7);
    EXPECT_TRUE(SamePixels(ReadPicture("-").picture, picture)) << kind.name;
  }
}

TEST_F(InputStream, ErrorsNameStandardInput) {
  WriteBytes(folder_ / "empty", "");
  {
    const StandardInput empty(folder_ / "empty");
    EXPECT_THAT(ErrorOf([] { ReadPicture("-"); }), HasSubstr("standard input: the file is empty"));
  }
  const Picture picture = NoisePicture({.width = 70, .height = 50});
  for (const auto& kind : kKinds) {
    WritePicture(folder_ / kind.name, kind.format, picture);
    const std::string bytes = ReadBytes(folder_ / kind.name);
    const StandardInput pipe(Fifo(bytes.substr(0, bytes.size() / 2)));
    EXPECT_THAT(ErrorOf([] { ReadPicture("-"); }), HasSubstr("standard input: ")) << kind.name;
  }
  // A file of that name is another thing.
  EXPECT_THAT(ErrorOf([] { ReadPicture("./-"); }), testing::StartsWith("./-: "));
}

TEST_F(InputStream, BytesThatWerePeekedAtComeAgain) {
  for (const std::size_t peeked : {0u, 1u, 16u, 5000u}) {
    const std::string bytes = "some bytes " + std::string(3000, 'x');
    WriteBytes(folder_ / "file", bytes);
    for (const std::filesystem::path& path : {folder_ / "file", Fifo(bytes)}) {
      FilePtr file = OpenInput(path);
      EXPECT_EQ(Peek(file, peeked), bytes.substr(0, peeked));
      EXPECT_EQ(ReadToEnd(file.get(), 1 << 20), bytes);
    }
  }
}

TEST_F(InputStream, MoreThanTheLimitIsAnError) {
  WriteBytes(folder_ / "file", std::string(1000, 'x'));
  EXPECT_THAT(ErrorOf([&] { ReadToEnd(OpenInput(folder_ / "file").get(), 999); }),
              HasSubstr("more than 999 bytes"));
  EXPECT_EQ(ReadToEnd(OpenInput(folder_ / "file").get(), 1000).size(), 1000u);
}

TEST_F(InputStream, ACopyInMemoryCanSeek) {
  const std::string bytes = "0123456789";
  FilePtr file = MakeSeekable(OpenInput(Fifo(bytes)), 100);
  EXPECT_EQ(FileSize(file.get()), 10u);
  EXPECT_EQ(std::fseek(file.get(), -3, SEEK_END), 0);
  EXPECT_EQ(std::fgetc(file.get()), '7');
  EXPECT_EQ(std::fseek(file.get(), 2, SEEK_SET), 0);
  EXPECT_EQ(std::fgetc(file.get()), '2');
  EXPECT_NE(std::fseek(file.get(), 11, SEEK_SET), 0);
}

}  // namespace
}  // namespace tessera
