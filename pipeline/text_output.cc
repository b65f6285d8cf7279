#include "pipeline/text_output.h"

#include "pipeline/display_name.h"
#include "pipeline/require_system.h"

namespace tessera {

TextOutput::TextOutput(const std::filesystem::path& path, bool overwrite)
    : shown_name_(path == "-" ? "standard output" : DisplayName(path)) {
  if (path == "-") return;
  AtomicFile::RemoveStale(path.parent_path());
  Naming(shown_name_, [&] { file_.emplace(path, overwrite); });
}

void TextOutput::Write(std::string_view text) {
  Naming(shown_name_, [&] {
    const bool written = std::fwrite(text.data(), 1, text.size(), stream()) == text.size() &&
                         (file_ || std::fflush(stdout) == 0);
    RequireSystem(written, "cannot write");
  });
}

void TextOutput::Close() {
  Naming(shown_name_, [&] {
    if (file_) file_->Commit();
  });
}

}  // namespace tessera
