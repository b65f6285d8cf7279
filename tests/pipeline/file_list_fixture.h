// A folder with files, and what is listed of them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <string>
#include <vector>

#include "ops/error.h"
#include "pipeline/file_list.h"
#include "tests/temporary_folder.h"

namespace tessera {

class FileListTest : public testing::Test {
 protected:
  // With the folders that it is in.
  void Make(const std::string& name, const std::string& bytes = "x") const {
    const std::filesystem::path file = folder_ / name;
    std::filesystem::create_directories(file.parent_path());
    WriteBytes(file, bytes);
  }
  void MakeLink(const std::string& to, const std::string& name) const {
    std::filesystem::create_symlink(to, folder_ / name);
  }
  // Seconds after 1970.
  void SetTime(const std::string& name, time_t seconds, long nanoseconds = 0) const {
    const timespec time = {seconds, nanoseconds};
    const timespec times[] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / name).c_str(), times, 0), 0);
  }

  // Of names in the test's folder, "in" to "out" by default.
  ListOptions Options(const std::vector<std::string>& inputs = {"in"},
                      const std::string& output = "out") const {
    ListOptions options;
    for (const std::string& input : inputs) options.inputs.push_back(folder_ / input);
    options.output = folder_ / output;
    return options;
  }

  // "a.png > out/a.png" for each file, without the name of the test's folder.
  std::vector<std::string> Pairs(const FileList& list) const {
    const auto name = [&](const std::filesystem::path& file) {
      const std::string start = folder_.path().native() + "/";
      return file.native().starts_with(start) ? file.native().substr(start.size()) : file.native();
    };
    std::vector<std::string> pairs;
    for (const ListedFile& file : list.files)
      pairs.push_back(name(file.input) + " > " + name(file.output));
    return pairs;
  }
  std::vector<std::string> Pairs(const ListOptions& options) const {
    return Pairs(ListFiles(options));
  }

  static std::string ErrorOf(const ListOptions& options) {
    try {
      ListFiles(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
};

}  // namespace tessera
