// Files and their names.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/file_status.h"
#include "pipeline/image_format.h"
#include "tests/pipeline/file_size_limit.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void Put(AtomicFile& file, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), file.stream());
}

TEST(AtomicFile, IsThereOnlyWhenCommitted) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "out");
    Put(file, "hello");
    std::fflush(file.stream());
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
    EXPECT_EQ(folder.NumFiles(), 1u);  // the temporary one, in the same folder
    file.Commit();
    EXPECT_EQ(ReadBytes(folder / "out"), "hello");
    EXPECT_EQ(folder.NumFiles(), 1u);
  }
  EXPECT_EQ(ReadBytes(folder / "out"), "hello");
  EXPECT_EQ(folder.NumFiles(), 1u);
}

TEST(AtomicFile, LeavesTheOldFileUntilThen) {
  const TemporaryFolder folder;
  WriteBytes(folder / "out", "old");
  {
    AtomicFile file(folder / "out");
    Put(file, "new");
  }
  EXPECT_EQ(ReadBytes(folder / "out"), "old");
  EXPECT_EQ(folder.NumFiles(), 1u);
}

TEST(AtomicFile, KeepsPermissionsAndFollowsLinks) {
  const TemporaryFolder folder;
  WriteBytes(folder / "target", "old");
  ASSERT_EQ(::chmod((folder / "target").c_str(), 0640), 0);
  std::filesystem::create_symlink("target", folder / "link");
  AtomicFile file(folder / "link");
  Put(file, "new");
  file.Commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(ReadBytes(folder / "target"), "new");
  struct stat status = {};
  ASSERT_EQ(::stat((folder / "target").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

constexpr const char* kExists = "exists already; --overwrite replaces it";

TEST(AtomicFile, ReplacesNothingUnlessItMay) {
  const TemporaryFolder folder;
  WriteBytes(folder / "out", "old");
  std::filesystem::create_symlink("out", folder / "link");
  for (const char* name : {"out", "link"}) {
    EXPECT_THAT([&] { AtomicFile(folder / name, false); }, testing::ThrowsMessage<Error>(kExists));
    EXPECT_THAT([&] { AtomicFile::CheckOverwrite(folder / name, false); },
                testing::ThrowsMessage<Error>(kExists));
    EXPECT_NO_THROW(AtomicFile::CheckOverwrite(folder / name, true));
  }
  EXPECT_NO_THROW(AtomicFile::CheckOverwrite(folder / "new", false));
  EXPECT_EQ(ReadBytes(folder / "out"), "old");
  EXPECT_EQ(folder.NumFiles(), 2u);
}

TEST(AtomicFile, KeepsWhatOthersMadeMeanwhileUnlessItMayReplaceIt) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("target", folder / "link");
  for (const char* name : {"file", "link", "dangling"}) {
    SCOPED_TRACE(name);
    AtomicFile file(folder / name, false), replacing(folder / name, true);
    Put(file, "own");
    Put(replacing, "own");
    if (name == std::string("dangling")) {
      std::filesystem::create_symlink("nowhere", folder / name);
    } else {
      WriteBytes(folder / name, "theirs");
    }
    EXPECT_THAT([&] { file.Commit(); }, testing::ThrowsMessage<Error>(kExists));
    if (name != std::string("dangling")) {
      EXPECT_EQ(ReadBytes(folder / name), "theirs");
    }
    replacing.Commit();
    EXPECT_EQ(ReadBytes(folder / name), "own");
  }
  EXPECT_EQ(folder.NumFiles(), 4u);
}

TEST(AtomicFile, IsTheFirstOfManyThatMayNotReplaceEachOther) {
  const TemporaryFolder folder;
  AtomicFile first(folder / "out", false), second(folder / "out", false);
  Put(first, "first");
  Put(second, "second");
  first.Commit();
  EXPECT_THROW(second.Commit(), Error);
  EXPECT_EQ(ReadBytes(folder / "out"), "first");
}

// /dev/stdout leads through such a link to the file that a shell has redirected it to.
TEST(AtomicFile, RefusesWhatAProgramHasOpen) {
  const TemporaryFolder folder;
  WriteBytes(folder / "log", "precious");
  const int fd = ::open((folder / "log").c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(fd, 0);
  const std::string number = std::to_string(fd);
  std::filesystem::create_symlink("/proc/self/fd/" + number, folder / "link");
  for (const std::filesystem::path& path :
       {std::filesystem::path("/proc/self/fd") / number, std::filesystem::path("/dev/fd") / number,
        folder / "link"})
    for (const bool overwrite : {false, true})
      EXPECT_THAT([&] { AtomicFile(path, overwrite); },
                  testing::ThrowsMessage<Error>(HasSubstr("what a program has open")))
          << path;
  ::close(fd);
  EXPECT_EQ(ReadBytes(folder / "log"), "precious");
}

TEST(SameFile, SeesThroughNames) {
  const TemporaryFolder folder;
  WriteBytes(folder / "a", "x");
  WriteBytes(folder / "b", "x");
  std::filesystem::create_symlink("a", folder / "link");
  std::filesystem::create_hard_link(folder / "a", folder / "second");
  std::filesystem::create_symlink("new", folder / "dangling");
  const std::filesystem::path here = folder.path();
  EXPECT_TRUE(SameFile(here / "a", here / "." / "a"));
  EXPECT_TRUE(SameFile(here / "a", here / "link"));
  EXPECT_TRUE(SameFile(here / "a", here / "second"));
  EXPECT_TRUE(SameFile(here / "new", here / "." / "new"));
  EXPECT_TRUE(SameFile(here / "no" / ".." / "new", here / "new"));
  EXPECT_FALSE(SameFile(here / "a", here / "b"));
  EXPECT_FALSE(SameFile(here / "a", here / "new"));
  EXPECT_FALSE(SameFile(here / "new", here / "newer"));
}

TEST(AtomicFile, FollowsLinksToWhatIsNotThereYet) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink("sub/second", folder / "link");
  std::filesystem::create_symlink("target", folder / "sub" / "second");
  AtomicFile file(folder / "link");
  Put(file, "new");
  file.Commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "sub" / "second"));
  EXPECT_EQ(ReadBytes(folder / "sub" / "target"), "new");
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_THROW(AtomicFile(folder / "loop"), Error);
}

// errno of a call of before must not get into the message.
TEST(AtomicFile, GivesTheReasonOfTheCallThatFailed) {
  const TemporaryFolder folder;
  WriteBytes(folder / "file", "x");
  const auto error_of = [](auto&& f) -> std::string {
    errno = EILSEQ;
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::filesystem::path target = folder / "no" / "out", below_file = folder / "file" / "out";
  EXPECT_THAT(error_of([&] { AtomicFile::CheckTarget(target); }), HasSubstr("is not there"));
  EXPECT_THAT(error_of([&] { AtomicFile file(target); }), HasSubstr("No such file"));
  EXPECT_THAT(error_of([&] { AtomicFile file(below_file); }), HasSubstr("Not a directory"));
  EXPECT_THAT(error_of([&] {
                AtomicFile file(folder / "out");
                std::filesystem::create_directory(folder / "out");
                file.Commit();
              }),
              HasSubstr("Is a directory"));
}

TEST(AtomicFile, NamesAsLongAsTheFileSystemAllows) {
  const TemporaryFolder folder;
  const std::string name(255, 'n');
  AtomicFile file(folder / name);
  file.Commit();
  EXPECT_TRUE(std::filesystem::exists(folder / name));
}

TEST(AtomicFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_THROW(AtomicFile(folder.path()), Error);
  EXPECT_THROW(AtomicFile("/dev/null"), Error);
  EXPECT_THROW(AtomicFile(folder / "no" / "such"), Error);
  EXPECT_THROW(AtomicFile::CheckTarget(folder.path()), Error);
  EXPECT_THROW(AtomicFile::CheckTarget(folder / "no" / "such"), Error);
  EXPECT_NO_THROW(AtomicFile::CheckTarget(folder / "fine"));
  EXPECT_EQ(folder.NumFiles(), 0u);
}

// What CheckTarget says of a target, or "".
std::string Obstacle(const std::filesystem::path& target, bool makes_folder) {
  try {
    AtomicFile::CheckTarget(target, makes_folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AtomicFile, TellsWhetherItsFolderCanBeMade) {
  const TemporaryFolder folder;
  WriteBytes(folder / "file", "x");
  std::filesystem::create_symlink("nowhere", folder / "link");
  EXPECT_EQ(Obstacle(folder / "new" / "sub" / "out", true), "");
  EXPECT_EQ(Obstacle(folder / "new" / "sub" / "out", false), "its folder is not there");
  EXPECT_EQ(Obstacle("new/out", true), "");
  EXPECT_EQ(Obstacle("new/out", false), "its folder is not there");
  for (const bool makes_folder : {true, false}) {
    EXPECT_THAT(Obstacle(folder / "file" / "out", makes_folder), HasSubstr("file is no folder"));
    EXPECT_THAT(Obstacle(folder / "file" / "sub" / "out", makes_folder),
                AllOf(HasSubstr("cannot be created"), HasSubstr("file is no folder")));
    EXPECT_THAT(Obstacle(folder / "link" / "out", makes_folder),
                HasSubstr("link is a link to nowhere"));
    EXPECT_THAT(Obstacle(folder.path(), makes_folder), HasSubstr("is a folder"));
  }
  EXPECT_EQ(folder.NumFiles(), 2u);
}

TEST(AtomicFile, TellsThatItsFolderMayNotBeMade) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "locked");
  ASSERT_EQ(::chmod((folder / "locked").c_str(), 0555), 0);
  if (::access((folder / "locked").c_str(), W_OK) == 0) GTEST_SKIP() << "may write everywhere";
  for (const bool makes_folder : {true, false}) {
    EXPECT_EQ(Obstacle(folder / "locked" / "sub" / "out", makes_folder),
              "its folder is not there, and cannot be created: Permission denied");
    EXPECT_EQ(Obstacle(folder / "locked" / "out", makes_folder),
              "cannot create a file in its folder: Permission denied");
  }
}

TEST(AtomicFile, NoticesWhatTheDiskDoesNotTake) {
  const TemporaryFolder folder;
  WriteBytes(folder / "out", "old");
  {
    const FileSizeLimit full(1000);
    AtomicFile file(folder / "out");
    Put(file, std::string(500, 'x'));
    std::fflush(file.stream());
    Put(file, std::string(100000, 'x'));
    EXPECT_THROW(file.Commit(), Error);
  }
  EXPECT_EQ(ReadBytes(folder / "out"), "old");
  EXPECT_EQ(folder.NumFiles(), 1u);
}

TEST(AtomicFile, AbandonAllRemovesTemporaries) {
  const TemporaryFolder folder;
  const auto interrupted = [&] {
    AtomicFile a(folder / "a"), b(folder / "b"), c(folder / "c");
    c.Commit();
    AtomicFile::AbandonAll();
    ::_exit(7);
  };
  EXPECT_EXIT(interrupted(), testing::ExitedWithCode(7), "");
  EXPECT_EQ(folder.NumFiles(), 1u);
  EXPECT_TRUE(std::filesystem::exists(folder / "c"));
}

// A program that is killed in the midst of writing to `target`.
void WriteAndBeKilled(const std::filesystem::path& target) {
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(target);
    Put(file, "half");
    std::fflush(file.stream());
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(AtomicFile, WhatAKilledProgramLeavesIsRemoved) {
  const TemporaryFolder folder;
  WriteBytes(folder / "out", "old");
  ASSERT_EQ(::chmod((folder / "out").c_str(), 0444), 0);  // the temporary file is read-only, too
  WriteAndBeKilled(folder / "out");
  WriteAndBeKilled(folder / "other");
  ASSERT_EQ(folder.NumFiles(), 3u);
  EXPECT_EQ(AtomicFile::RemoveStale(folder.path()), 2u);
  EXPECT_EQ(folder.NumFiles(), 1u);
  EXPECT_EQ(ReadBytes(folder / "out"), "old");
  EXPECT_EQ(AtomicFile::RemoveStale(folder.path()), 0u);
}

TEST(AtomicFile, WhatIsBeingWrittenIsNotStale) {
  const TemporaryFolder folder;
  AtomicFile own(folder / "own");
  Put(own, "own");
  int ready[2], go_on[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(go_on), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(folder / "child's");
    Put(file, "child's");
    char byte = 0;
    const bool told = ::write(ready[1], &byte, 1) == 1 && ::read(go_on[0], &byte, 1) == 1;
    file.Commit();
    ::_exit(told ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(AtomicFile::RemoveStale(folder.path()), 0u);
  ASSERT_EQ(::write(go_on[1], &byte, 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  own.Commit();
  EXPECT_EQ(ReadBytes(folder / "own"), "own");
  EXPECT_EQ(ReadBytes(folder / "child's"), "child's");
  EXPECT_EQ(folder.NumFiles(), 2u);
  for (const int fd : {ready[0], ready[1], go_on[0], go_on[1]}) ::close(fd);
}

// Between creation, locking, renaming: at no moment is a file lost that somebody removes the stale
// ones beside.
TEST(AtomicFile, IsCompleteWhileOthersTidyUp) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0)
    while (true) AtomicFile::RemoveStale(folder.path());
  for (int i = 0; i < 200 && !testing::Test::HasFailure(); ++i) {
    AtomicFile file(folder / std::to_string(i % 10));
    Put(file, std::to_string(i));
    EXPECT_NO_THROW(file.Commit()) << i;
    EXPECT_EQ(ReadBytes(folder / std::to_string(i % 10)), std::to_string(i));
  }
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(folder.NumFiles(), 10u);
}

TEST(AtomicFile, OnlyOwnNamesAreStale) {
  const TemporaryFolder folder;
  for (const char* name :
       {".tessera-0123456789.tm", ".tessera-012345678.tmp", ".tessera-012345678Z.tmp",
        "tessera-0123456789.tmp", ".tessera-0123456789.tmp.png", ".hidden"})
    WriteBytes(folder / name, "x");
  std::filesystem::create_directory(folder / ".tessera-aaaaaaaaaa.tmp");
  std::filesystem::create_symlink(".hidden", folder / ".tessera-bbbbbbbbbb.tmp");
  EXPECT_EQ(AtomicFile::RemoveStale(folder.path()), 0u);
  EXPECT_EQ(folder.NumFiles(), 8u);
  EXPECT_EQ(AtomicFile::RemoveStale(folder / "no"), 0u);
}

TEST(DisplayName, ShowsAnyBytesOnOneLine) {
  EXPECT_EQ(DisplayName("plain name.png"), "plain name.png");
  EXPECT_EQ(DisplayName("größe 图.png"), "größe 图.png");
  EXPECT_EQ(DisplayName("a\nb\\c\x01"), "a\\nb\\\\c\\x01");
  EXPECT_EQ(DisplayName("\xFF\xC3"), "\\xFF\\xC3");
  EXPECT_EQ(DisplayName("\xC0\xAF"), "\\xC0\\xAF");           // overlong
  EXPECT_EQ(DisplayName("\xED\xA0\x80"), "\\xED\\xA0\\x80");  // a surrogate
  EXPECT_EQ(DisplayName("\x1B[31m"), "\\x1B[31m");
}

TEST(DisplayName, LetsNothingSteerATerminal) {
  EXPECT_EQ(DisplayName("a\xC2\x9B"
                        "31m"),
            "a\\xC2\\x9B31m");  // CSI
  EXPECT_EQ(DisplayName("a\xE2\x80\xAE"
                        "gnp"),
            "a\\xE2\\x80\\xAEgnp");  // right to left
  EXPECT_EQ(DisplayName("\xC3\xA4 \xC2\xA0 \xE2\x82\xAC"), "\xC3\xA4 \xC2\xA0 \xE2\x82\xAC");
}

TEST(OneLine, EscapesOnce) {
  EXPECT_EQ(OneLine("a\\nb\nc\x1B \xFF größe"), "a\\nb\\nc\\x1B \\xFF größe");
}

TEST(NamingFile, PutsTheNameInFront) {
  try {
    NamingFile("a.png", [] { throw Error("broken"); });
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a.png: broken");
  }
  EXPECT_EQ(NamingFile("a.png", [] { return 5; }), 5);
}

TEST(ImageFormat, HasAnExtensionThatStandsForIt) {
  for (const ImageFormat format : {ImageFormat::kPng, ImageFormat::kJpeg, ImageFormat::kWebp,
                                   ImageFormat::kTiff, ImageFormat::kBmp, ImageFormat::kPnm})
    EXPECT_EQ(FormatOfExtension(StrCat("x", Extension(format))), format) << Name(format);
}

TEST(ImageFormat, ByExtensionInAnyCase) {
  EXPECT_EQ(FormatOfExtension("a/b.c/x.PNG"), ImageFormat::kPng);
  EXPECT_EQ(FormatOfExtension("x.JpEg"), ImageFormat::kJpeg);
  EXPECT_EQ(FormatOfExtension("x.tif"), ImageFormat::kTiff);
  EXPECT_EQ(FormatOfExtension("x.png.webp"), ImageFormat::kWebp);
  for (const char* name : {"x", "png", ".png", "x.gif", "x.", "x.png/y"}) {
    EXPECT_EQ(FormatOfExtension(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace tessera
