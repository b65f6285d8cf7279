#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "apps/message.h"
#include "apps/progress_display.h"
#include "apps/status_line.h"
#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/format_text.h"

namespace tessera {
namespace {

std::string Sizes(const PictureFormat& in, const PictureFormat& out) {
  return StrCat(in.width, "x", in.height, " -> ", out.width, "x", out.height);
}

std::string Megabytes(std::size_t bytes) {
  return StrCat((bytes + (std::size_t{1} << 20) - 1) >> 20, " MB");
}

// Whole seconds: "0:07", "12:34", "3:00:00".
std::string Duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  const auto two_digits = [](std::int64_t n) { return StrCat(n < 10 ? "0" : "", n); };
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  return (hours > 0 ? StrCat(hours, ":", two_digits(minutes)) : std::to_string(minutes)) + ":" +
         two_digits(whole % 60);
}

class TextDisplay final : public ProgressDisplay {
 public:
  explicit TextDisplay(const TextDisplayOptions& options) : options_(options) {}

  void Planned(const BatchState& state, std::size_t file) override {
    const FilePlan& plan = state.in_work.at(file).plan;
    if (options_.plans || options_.details) {
      std::string line = StrCat(Names(state, file), Sizes(plan.input, plan.output), ", about ",
                                Megabytes(plan.memory_bytes));
      if (options_.details) {
        line += StrCat(", ", plan.upscale.tiles, " tiles of ", plan.upscale.tile_width, "x",
                       plan.upscale.tile_height);
      }
      Line(line);
    }
    Bar(state, true);
  }

  void Progress(const BatchState& state, std::size_t /*file*/) override { Bar(state, false); }

  void Done(const BatchState& state, std::size_t file, const FileResult& result,
            double seconds) override {
    if (options_.notes) {
      for (const std::string& note : result.notes)
        Complain(StrCat(DisplayName(state.list.files[file].input), ": note: ", note));
    }
    if (options_.lines) {
      Line(StrCat(Names(state, file), Sizes(result.input, result.output), ", ", Fixed(seconds, 1),
                  " s"));
    }
    Bar(state, true);
  }

  void Failed(const BatchState& state, std::optional<std::size_t> /*file*/,
              const std::string& reason) override {
    Complain(reason);
    Bar(state, true);
  }

  void Finished(const BatchState& state, bool interrupted) override {
    line_.Clear();
    const FileList& list = state.list;
    const bool alone = state.total() == 1 && !list.into_folder;
    if (!options_.summary || (alone && !interrupted)) return;
    const std::pair<std::size_t, const char*> reasons[] = {
        {list.up_to_date, "up to date"},
        {list.hidden, "hidden"},
        {list.not_pictures, "no pictures"},
        {list.subfolders, "subfolders"},
        {list.loops, "links to folders read already"},
        {list.results, "earlier results"}};
    std::size_t skipped = 0;
    std::string why;
    for (const auto& [count, reason] : reasons) {
      skipped += count;
      if (count > 0) why += StrCat(why.empty() ? " (" : ", ", count, " ", reason);
    }
    std::string text =
        StrCat(interrupted ? "interrupted: " : "", state.done,
               options_.dry_run ? " would be written, " : " done, ", skipped, " skipped", why,
               why.empty() ? "" : ")", ", ", state.failures.size(), " failed");
    if (const std::size_t left = state.total() - state.finished(); left > 0)
      text += StrCat(", ", left, " left");
    Say(StrCat(text, ", ", Duration(state.seconds())));
    for (const std::string& failure : state.failures)
      std::fprintf(stderr, "  %s\n", OneLine(failure).c_str());
  }

 private:
  static std::string Names(const BatchState& state, std::size_t file) {
    const ListedFile& listed = state.list.files[file];
    return StrCat(DisplayName(listed.input), " -> ", DisplayName(listed.output), "  ");
  }

  void Line(const std::string& line) {
    line_.Clear();
    std::fprintf(options_.out, "%s\n", line.c_str());
    std::fflush(options_.out);
  }
  void Complain(const std::string& message) {
    line_.Clear();
    Say(message);
  }

  // A few times a second, and at once if `now`.
  void Bar(const BatchState& state, bool now) {
    if (!options_.bar || !(now || line_.Due())) return;

    double files = static_cast<double>(state.finished()), pixels = state.pixels;
    std::size_t tiles_done = 0, tiles = 0;
    for (const auto& [file, work] : state.in_work) {
      const auto all = static_cast<std::size_t>(std::max<std::int64_t>(1, work.plan.upscale.tiles));
      const double share = static_cast<double>(work.tiles_done) / static_cast<double>(all);
      const PictureFormat& out = work.plan.output;
      files += share;
      pixels += share * static_cast<double>(out.width) * static_cast<double>(out.height);
      tiles_done += work.tiles_done;
      tiles += all;
    }
    const double share = files / static_cast<double>(std::max<std::size_t>(1, state.total()));
    const double seconds = std::max(1e-3, state.seconds());
    constexpr std::size_t kWidth = 20;
    const auto filled = static_cast<std::size_t>(share * kWidth);
    std::string bar = StrCat("[", std::string(filled, '#'), std::string(kWidth - filled, ' '), "] ",
                             state.finished(), "/", state.total(), " pictures");
    if (tiles > 0) bar += StrCat(", ", tiles_done, "/", tiles, " tiles");
    bar += StrCat(", ", Fixed(pixels / seconds * 1e-6, 1), " Mpixel/s");
    if (share > 0) bar += StrCat(", ", Duration(seconds * (1 - share) / share), " left");
    line_.Show(std::move(bar));
  }

  const TextDisplayOptions options_;
  StatusLine line_;
};

}  // namespace

std::unique_ptr<ProgressDisplay> MakeTextDisplay(const TextDisplayOptions& options) {
  return std::make_unique<TextDisplay>(options);
}

}  // namespace tessera
