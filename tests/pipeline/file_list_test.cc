// Which files a run reads and writes.
#include "pipeline/file_list.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "tests/pipeline/file_list_fixture.h"

namespace tessera {
namespace {

using std::filesystem::path;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(FileListTest, OneFileToOneFile) {
  Make("a.png");
  const FileList list = ListFiles(Options({"a.png"}, "b.jpg"));
  EXPECT_THAT(Pairs(list), ElementsAre("a.png > b.jpg"));
  EXPECT_EQ(list.files[0].format, ImageFormat::kJpeg);
  EXPECT_FALSE(list.into_folder);
  EXPECT_THAT(list.output_folders, ElementsAre(folder_.path()));
}

TEST_F(FileListTest, AFolderIsAnOutputThatIsOneOrEndsLikeOne) {
  Make("a.png");
  Make("b.png");
  std::filesystem::create_directory(folder_ / "there");
  EXPECT_THAT(Pairs(Options({"a.png"}, "there")), ElementsAre("a.png > there/a.png"));
  EXPECT_THAT(Pairs(Options({"a.png"}, "new/")), ElementsAre("a.png > new/a.png"));
  EXPECT_THAT(Pairs(Options({"b.png", "a.png"}, "new")),
              ElementsAre("b.png > new/b.png", "a.png > new/a.png"));
  EXPECT_TRUE(ListFiles(Options({"a.png"}, "new/")).into_folder);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
}

TEST_F(FileListTest, SeveralInputsNeedAFolder) {
  Make("a.png");
  Make("b.png");
  Make("c.png");
  EXPECT_THAT(ErrorOf(Options({"a.png", "b.png"}, "c.png")), HasSubstr("is no folder"));
  EXPECT_THAT(ErrorOf(Options({"a.png"}, "c.png/")), HasSubstr("is no folder"));
  EXPECT_THAT(ErrorOf(Options({"a.png", "b.png"}, "new.png")), HasSubstr("end it with '/'"));
  EXPECT_THAT(Pairs(Options({"a.png"}, "new.png/")), ElementsAre("a.png > new.png/a.png"));
  EXPECT_THAT(ErrorOf(Options({}, "out")), HasSubstr("needed"));
}

TEST_F(FileListTest, AFolderWithoutItsFoldersUnlessRecursive) {
  Make("in/b.png");
  Make("in/a.jpg");
  Make("in/sub/c.png");
  Make("in/sub/deep/d.png");
  ListOptions options = Options();
  const FileList flat = ListFiles(options);
  EXPECT_THAT(Pairs(flat), ElementsAre("in/a.jpg > out/a.jpg", "in/b.png > out/b.png"));
  EXPECT_EQ(flat.subfolders, 1u);
  options.recursive = true;
  const FileList tree = ListFiles(options);
  EXPECT_THAT(Pairs(tree), ElementsAre("in/a.jpg > out/a.jpg", "in/b.png > out/b.png",
                                       "in/sub/c.png > out/sub/c.png",
                                       "in/sub/deep/d.png > out/sub/deep/d.png"));
  EXPECT_EQ(tree.subfolders, 0u);
  EXPECT_THAT(tree.output_folders,
              ElementsAre(folder_ / "out", folder_ / "out/sub", folder_ / "out/sub/deep"));
}

TEST_F(FileListTest, HiddenFilesAndThoseOfSystemsAreCounted) {
  for (const char* name : {"in/.a.png", "in/._b.png", "in/Thumbs.db", "in/thumbs.DB",
                           "in/desktop.ini", "in/.git/c.png", "in/.tessera-0123456789.tmp"})
    Make(name, "\x89PNG\r\n\x1A\n");
  Make("in/d.png");
  ListOptions options = Options();
  options.recursive = true;
  const FileList list = ListFiles(options);
  EXPECT_THAT(Pairs(list), ElementsAre("in/d.png > out/d.png"));
  EXPECT_EQ(list.hidden, 7u);
  EXPECT_EQ(list.not_pictures, 0u);
}

TEST_F(FileListTest, PicturesAreToldByNameElseByContent) {
  using namespace std::string_literals;
  for (const char* name : {"a.PNG", "b.JpEg", "c.jfif", "d.gif", "e.TIF", "f.pbm", "g.bmp"})
    Make(std::string("in/") + name, "broken, but called so");
  Make("in/p1", "\xFF\xD8\xFF\xE0....JFIF");
  Make("in/p2.dat", "\x89PNG\r\n\x1A\n\0\0\0\rIHDR"s);
  Make("in/p3.x", "RIFF\1\2\3\4WEBPVP8 ");
  Make("in/p4.x", "MM\0*\0\0\0\x08"s);
  Make("in/p5.x", "P6 3 2 255\n");
  Make("in/p6.x", "BM\x10\x20\0\0\0\0\0\0\x36\0\0\0\x28\0"s);
  for (const char* text : {"", "P", "P6", "P3 is a printer", "BMW, Audi, Opel, ...",
                           "RIFF\1\2\3\4WAVE", "GIF", "text"})
    Make("in/n" + std::to_string(folder_.NumFiles()) +
             std::to_string(std::hash<std::string>()(text)),
         text);
  const FileList list = ListFiles(Options());
  std::vector<std::string> names;
  for (const ListedFile& file : list.files) names.push_back(file.input.filename());
  EXPECT_THAT(names, ElementsAre("a.PNG", "b.JpEg", "c.jfif", "d.gif", "e.TIF", "f.pbm", "g.bmp",
                                 "p1", "p2.dat", "p3.x", "p4.x", "p5.x", "p6.x"));
  EXPECT_EQ(list.not_pictures, 8u);
}

TEST_F(FileListTest, WhatIsNamedIsTaken) {
  Make(".hidden.png");
  Make("text.txt");
  EXPECT_THAT(Pairs(Options({".hidden.png", "text.txt", "missing.png"}, "out/")),
              ElementsAre(".hidden.png > out/.hidden.png", "text.txt > out/text.txt.png",
                          "missing.png > out/missing.png"));
  EXPECT_THAT(ErrorOf(Options({"missing/"})), HasSubstr("no such folder"));
  EXPECT_THAT(ErrorOf(Options({"missing"})), HasSubstr("missing: there is no such file or folder"));
}

TEST_F(FileListTest, PipesInFoldersAreNoPictures) {
  std::filesystem::create_directory(folder_ / "in");
  ASSERT_EQ(::mkfifo((folder_ / "in/a.png").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((folder_ / "in/b").c_str(), 0600), 0);
  const FileList list = ListFiles(Options());
  EXPECT_THAT(list.files, IsEmpty());
  EXPECT_EQ(list.not_pictures, 2u);
}

TEST_F(FileListTest, LinksAreFollowed) {
  Make("elsewhere/a.png");
  Make("elsewhere/b", "P5\n1 1\n255\n.");
  Make("in/x.png");
  MakeLink("../elsewhere", "in/folder");
  MakeLink("../elsewhere/a.png", "in/file.png");
  MakeLink("../elsewhere/b", "in/content");
  MakeLink("nowhere", "in/lost.png");
  MakeLink("nowhere", "in/lost.txt");
  MakeLink("ring.png", "in/ring.png");
  ListOptions options = Options();
  options.recursive = true;
  const FileList list = ListFiles(options);
  EXPECT_THAT(Pairs(list),
              ElementsAre("in/content > out/content.png", "in/file.png > out/file.png",
                          "in/folder/a.png > out/folder/a.png", "in/folder/b > out/folder/b.png",
                          "in/lost.png > out/lost.png", "in/ring.png > out/ring.png",
                          "in/x.png > out/x.png"));
  EXPECT_EQ(list.not_pictures, 1u);
}

TEST_F(FileListTest, LinksThatLoopEnd) {
  Make("in/a.png");
  Make("in/one/b.png");
  Make("in/two/c.png");
  MakeLink(".", "in/self");
  MakeLink("../two", "in/one/two");
  MakeLink("../one", "in/two/one");
  MakeLink("../..", "in/two/up");
  ListOptions options = Options();
  options.recursive = true;
  const FileList list = ListFiles(options);
  EXPECT_THAT(Pairs(list), ElementsAre("in/a.png > out/a.png", "in/one/b.png > out/one/b.png",
                                       "in/two/c.png > out/two/c.png"));
  EXPECT_EQ(list.loops, 4u);  // self, one/two, two/one, two/up/in
}

TEST_F(FileListTest, FoldersThatAllLinkToEachOtherAreReadOnce) {
  constexpr std::size_t kFolders = 10;
  const auto name = [](std::size_t i) { return std::to_string(i); };
  for (std::size_t i = 0; i < kFolders; ++i) {
    Make("in/" + name(i) + "/a.png");
    for (std::size_t k = 0; k < kFolders; ++k)
      MakeLink("../" + name(k), "in/" + name(i) + "/to" + name(k));
  }
  ListOptions options = Options();
  options.recursive = true;
  const FileList list = ListFiles(options);
  ASSERT_EQ(list.files.size(), kFolders);
  for (std::size_t i = 0; i < kFolders; ++i)
    EXPECT_EQ(list.files[i].input, folder_ / ("in/" + name(i) + "/a.png"));
  EXPECT_EQ(list.loops, kFolders * kFolders);
}

TEST_F(FileListTest, AFolderThatSeveralLinksLeadToIsReadThroughTheFirst) {
  Make("elsewhere/a.png");
  Make("elsewhere/sub/b.png");
  Make("in/z/c.png");
  MakeLink("../elsewhere", "in/y");
  MakeLink("../../elsewhere/sub", "in/z/sub");
  MakeLink("z", "in/alias");
  MakeLink("../in/z", "elsewhere/back");
  ListOptions options = Options();
  options.recursive = true;
  const FileList list = ListFiles(options);
  // A folder's own name goes before the links to it, wherever these are.
  EXPECT_THAT(Pairs(list),
              ElementsAre("in/y/a.png > out/y/a.png", "in/y/sub/b.png > out/y/sub/b.png",
                          "in/z/c.png > out/z/c.png"));
  EXPECT_EQ(list.loops, 3u);  // alias, z/sub, y/back
}

// Whether it is a picture cannot be told. Reading its first byte is an error, for every user.
TEST_F(FileListTest, WhatCannotBeReadIsTaken) {
  std::filesystem::create_directory(folder_ / "in");
  MakeLink("/proc/self/mem", "in/unreadable");
  const FileList list = ListFiles(Options());
  EXPECT_THAT(Pairs(list), ElementsAre("in/unreadable > out/unreadable.png"));
  EXPECT_EQ(list.not_pictures, 0u);
}

TEST_F(FileListTest, WhatMayNotBeReadIsTaken) {
  Make("in/locked");
  Make("elsewhere/a");
  MakeLink("../elsewhere/a", "in/behind");
  MakeLink("ring", "in/ring");
  ASSERT_EQ(::chmod((folder_ / "in/locked").c_str(), 0), 0);
  ASSERT_EQ(::chmod((folder_ / "elsewhere").c_str(), 0), 0);
  const bool reads_all = ::access((folder_ / "in/locked").c_str(), R_OK) == 0;
  const FileList list = ListFiles(Options());
  ::chmod((folder_ / "elsewhere").c_str(), 0700);
  if (reads_all) GTEST_SKIP() << "may read everything";
  EXPECT_THAT(Pairs(list), ElementsAre("in/behind > out/behind.png", "in/locked > out/locked.png"));
  EXPECT_EQ(list.not_pictures, 1u);  // the ring
}

TEST_F(FileListTest, AnOutputFolderWithinTheInputIsNotRead) {
  Make("in/a.png");
  Make("in/out/old.png");
  Make("in/sub/b.png");
  MakeLink("../out", "in/sub/link");
  ListOptions options = Options({"in"}, "in/out");
  options.recursive = true;
  EXPECT_THAT(Pairs(options),
              ElementsAre("in/a.png > in/out/a.png", "in/sub/b.png > in/out/sub/b.png"));
}

TEST_F(FileListTest, AFolderThatCannotBeReadStopsNothing) {
  Make("in/a.png");
  Make("in/locked/b.png");
  Make("in/z.png");
  ASSERT_EQ(::chmod((folder_ / "in/locked").c_str(), 0), 0);
  if (::access((folder_ / "in/locked").c_str(), R_OK) == 0) GTEST_SKIP() << "may read everything";
  ListOptions options = Options();
  options.recursive = true;
  const FileList list = ListFiles(options);
  ::chmod((folder_ / "in/locked").c_str(), 0700);
  EXPECT_THAT(Pairs(list), ElementsAre("in/a.png > out/a.png", "in/z.png > out/z.png"));
  ASSERT_EQ(list.unread.size(), 1u);
  EXPECT_EQ(list.unread[0].path, folder_ / "in/locked");
  EXPECT_EQ(list.unread[0].reason, "Permission denied");
}

// A path that gets too long for the system is a folder that cannot be read, for every user.
TEST_F(FileListTest, FoldersTooDeepStopNothing) {
  Make("in/a.png");
  Make("in/z.png");
  const std::string name(200, 'd');
  int at = ::open((folder_ / "in").c_str(), O_RDONLY | O_DIRECTORY);
  for (int depth = 0; depth < 21; ++depth) {
    ASSERT_EQ(::mkdirat(at, name.c_str(), 0700), 0);
    const int below = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = below;
  }
  ::close(at);
  ListOptions options = Options();
  options.recursive = true;
  const FileList list = ListFiles(options);
  EXPECT_THAT(Pairs(list), ElementsAre("in/a.png > out/a.png", "in/z.png > out/z.png"));
  ASSERT_EQ(list.unread.size(), 1u);
  EXPECT_EQ(list.unread[0].reason, "File name too long");
}

TEST_F(FileListTest, NamesAreAnyBytes) {
  const std::string longest = std::string(251, 'n') + ".png";
  const std::vector<std::string> names = {" a b.png",      "-x.png",       "\xFF\xFE.png",
                                          "line\nend.png", "quote'\".png", longest};
  for (const std::string& name : names) Make("in/" + name);
  const FileList list = ListFiles(Options());
  ASSERT_EQ(list.files.size(), names.size());
  for (const std::string& name : names)
    EXPECT_THAT(Pairs(list), testing::Contains("in/" + name + " > out/" + name));
}

TEST_F(FileListTest, ManyFiles) {
  std::filesystem::create_directory(folder_ / "in");
  for (int i = 0; i < 20000; ++i) {
    const path file = folder_ / ("in/" + std::to_string(i) + ".png");
    ASSERT_EQ(::mknod(file.c_str(), S_IFREG | 0600, 0), 0);
  }
  const FileList list = ListFiles(Options());
  ASSERT_EQ(list.files.size(), 20000u);
  EXPECT_EQ(list.files[0].input, folder_ / "in/0.png");
  EXPECT_EQ(list.files[19999].output, folder_ / "out/9999.png");
}

TEST_F(FileListTest, StandardStreamsAreForOneFile) {
  Make("a.jpg");
  Make("in/b.png");
  ListOptions options;
  options.inputs = {"-"};
  options.output = "-";
  FileList list = ListFiles(options);
  EXPECT_THAT(Pairs(list), ElementsAre("- > -"));
  EXPECT_EQ(list.files[0].format, ImageFormat::kPng);
  EXPECT_THAT(list.output_folders, IsEmpty());
  options.format = ImageFormat::kWebp;
  EXPECT_EQ(ListFiles(options).files[0].format, ImageFormat::kWebp);
  options.format.reset();
  options.inputs = {folder_ / "a.jpg"};
  EXPECT_EQ(ListFiles(options).files[0].format, ImageFormat::kJpeg);
  options.inputs = {"-", folder_ / "a.jpg"};
  options.output = folder_ / "out";
  EXPECT_THAT(ErrorOf(options), HasSubstr("standard input"));
  options.inputs = {folder_ / "in"};
  options.output = "-";
  EXPECT_THAT(ErrorOf(options), HasSubstr("standard output"));
}

// --- Folders for the outputs.

TEST_F(FileListTest, OutputFoldersAreMadeWithTheirParents) {
  Make("in/sub/a.png");
  ListOptions options = Options({"in"}, "new/out/");
  options.recursive = true;
  const FileList list = ListFiles(options);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
  PrepareOutputFolders(options, list);
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "new/out/sub"));
  WriteBytes(folder_ / "new/out/sub/.tessera-0123456789.tmp", "of a killed run");
  PrepareOutputFolders(options, list);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "new/out/sub"));
}

TEST_F(FileListTest, AnOutputFolderThatCannotBeMadeIsAnError) {
  Make("in/a.png");
  Make("file");
  const ListOptions options = Options({"in"}, "file/out");
  const FileList list = ListFiles(options);
  EXPECT_THROW(PrepareOutputFolders(options, list), Error);
}

// The others come out. The file's own message has the reason, in a dry run too.
TEST_F(FileListTest, AFolderWithinTheOutputThatCannotBeMadeStopsNothing) {
  Make("in/a/x.png");
  Make("in/b/y.png");
  Make("out/a");
  ListOptions options = Options();
  options.recursive = true;
  const FileList list = ListFiles(options);
  const auto obstacle = [](const ListedFile& file, bool makes_folder) -> std::string {
    try {
      AtomicFile::CheckTarget(file.output, makes_folder);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  ASSERT_EQ(list.files.size(), 2u);
  const std::string foreseen = obstacle(list.files[0], true);
  EXPECT_THAT(foreseen, HasSubstr("out/a is no folder"));
  EXPECT_EQ(obstacle(list.files[1], true), "none");
  PrepareOutputFolders(options, list);
  EXPECT_EQ(obstacle(list.files[0], false), foreseen);
  EXPECT_EQ(obstacle(list.files[1], false), "none");
}

}  // namespace
}  // namespace tessera
