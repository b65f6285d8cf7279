#include <chrono>

#include "apps/progress_display.h"
#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/format_text.h"

namespace tessera {
namespace {

class JsonDisplay final : public ProgressDisplay {
 public:
  explicit JsonDisplay(std::FILE* out) : out_(out) {}

  void Planned(const BatchState& state, std::size_t file) override {
    const FilePlan& plan = state.in_work.at(file).plan;
    Print("started", StrCat(Files(state, file), Sizes(plan.input, plan.output),
                            ", \"tiles\": ", plan.upscale.tiles,
                            ", \"memory_bytes\": ", plan.memory_bytes, Counts(state)));
  }

  void Progress(const BatchState& state, std::size_t file) override {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_progress_) return;
    next_progress_ = now + std::chrono::milliseconds(200);
    const BatchState::InWork& work = state.in_work.at(file);
    Print("progress", StrCat(Files(state, file), ", \"tiles_done\": ", work.tiles_done,
                             ", \"tiles\": ", work.plan.upscale.tiles, Counts(state)));
  }

  void Done(const BatchState& state, std::size_t file, const FileResult& result,
            double seconds) override {
    std::string notes;
    for (const std::string& note : result.notes)
      notes += (notes.empty() ? "" : ", ") + JsonString(note);
    Print("done", StrCat(Files(state, file), Sizes(result.input, result.output), ", \"seconds\": ",
                         Fixed(seconds, 3), ", \"notes\": [", notes, "]", Counts(state)));
  }

  void Failed(const BatchState& state, std::optional<std::size_t> file,
              const std::string& reason) override {
    Print("failed", StrCat(file ? Files(state, *file) : "", ", \"reason\": ", JsonString(reason),
                           Counts(state)));
  }

  void Finished(const BatchState& state, bool interrupted) override {
    const FileList& list = state.list;
    Print("finished",
          StrCat(Counts(state), ", \"skipped\": {\"up_to_date\": ", list.up_to_date,
                 ", \"hidden\": ", list.hidden, ", \"not_pictures\": ", list.not_pictures,
                 ", \"subfolders\": ", list.subfolders, ", \"loops\": ", list.loops,
                 ", \"results\": ", list.results, "}, \"unread_folders\": ", list.unread.size(),
                 ", \"interrupted\": ", interrupted ? "true" : "false",
                 ", \"seconds\": ", Fixed(state.seconds(), 3)));
  }

 private:
  static std::string Files(const BatchState& state, std::size_t file) {
    const ListedFile& listed = state.list.files[file];
    return StrCat(", \"file\": ", JsonString(DisplayName(listed.input)),
                  ", \"output\": ", JsonString(DisplayName(listed.output)));
  }
  static std::string Sizes(const PictureFormat& in, const PictureFormat& out) {
    return StrCat(", \"width\": ", in.width, ", \"height\": ", in.height,
                  ", \"output_width\": ", out.width, ", \"output_height\": ", out.height);
  }
  static std::string Counts(const BatchState& state) {
    return StrCat(", \"done\": ", state.done, ", \"failed\": ", state.failed,
                  ", \"total\": ", state.total());
  }

  void Print(const char* event, const std::string& rest) {
    std::fputs(StrCat("{\"event\": \"", event, "\"", rest, "}\n").c_str(), out_);
    std::fflush(out_);
  }

  std::FILE* out_;
  std::chrono::steady_clock::time_point next_progress_ = {};
};

}  // namespace

std::unique_ptr<ProgressDisplay> MakeJsonDisplay(std::FILE* out) {
  return std::make_unique<JsonDisplay>(out);
}

}  // namespace tessera
