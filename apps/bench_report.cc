#include "apps/bench_report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <numeric>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/format_text.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

__attribute__((format(printf, 1, 2))) std::string Format(const char* format, ...) {
  std::va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::string text(static_cast<std::size_t>(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  va_end(arguments);
  return text;
}

struct Summary {
  double min, p50, mean;
};

Summary Summarise(const std::vector<double>& runs_ms) {
  return {
      runs_ms.front(), runs_ms[runs_ms.size() / 2],
      std::accumulate(runs_ms.begin(), runs_ms.end(), 0.0) / static_cast<double>(runs_ms.size())};
}

// A step with what follows from its numbers.
struct StepLine {
  StepLine(const RunProfile::Step& step, double total_ms)
      : ms(step.end_ms - step.start_ms),
        share(Ratio(ms, total_ms)),
        gflops(Ratio(step.flops, ms) * 1e-6),
        gbytes_per_s(Ratio(static_cast<double>(step.bytes), ms) * 1e-6),
        layout(LayoutName(step.output.layout)),
        shape(ToString(step.output.shape)) {}

  // A step can be too short for the clock.
  static double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

  static std::string LayoutName(Layout layout) {
    switch (layout) {
      case Layout::kBlocked:
        return StrCat("NCHW", FloatLanes(), "c");
      case Layout::kChannelsLast:
        return "NHWC";
      case Layout::kRowMajor:
        break;
    }
    return "NCHW";
  }

  double ms, share, gflops, gbytes_per_s;
  std::string layout, shape;
};

double TotalMs(const RunProfile& profile) {
  return profile.steps.empty() ? 0 : profile.steps.back().end_ms;
}

// "[a, b]" of a list's elements, each as `element` writes it.
template <typename List, typename Element>
std::string Array(const List& list, Element&& element) {
  std::string array = "[";
  for (const auto& item : list) array += (array.size() == 1 ? "" : ", ") + element(item);
  return array + ']';
}

}  // namespace

std::string ToText(const BenchReport& report) {
  const Summary runs = Summarise(report.runs_ms);
  std::string text =
      Format("tessera %s threads=%d load=%.1fms min=%.2fms p50=%.2fms mean=%.2fms iters=%zu\n",
             OneLine(report.model).c_str(), report.threads, report.load_ms, runs.min, runs.p50,
             runs.mean, report.runs_ms.size());
  for (const BenchReport::Output& output : report.outputs) {
    text += StrCat("output ", OneLine(output.name), " ", output.dtype, " ", output.shape, "\n");
  }
  const auto megabytes = [](std::size_t bytes) { return static_cast<double>(bytes) * 0x1p-20; };
  text += Format("memory buffers=%.2fMB weights=%.2fMB packed=%.2fMB peak=%.1fMB\n",
                 megabytes(report.arena_bytes), megabytes(report.weight_bytes),
                 megabytes(report.packed_bytes), megabytes(report.peak_rss_bytes));
  if (!report.profile) return text;
  const double total = TotalMs(*report.profile);
  text += Format("%9s %6s %8s %7s  %-22s %-8s %-16s %s\n", "ms", "share", "GFLOP/s", "GB/s",
                 "kernel", "layout", "output", "node");
  for (const RunProfile::Step& step : report.profile->steps) {
    const StepLine line(step, total);
    text += Format("%9.3f %5.1f%% %8.1f %7.1f  %-22s %-8s %-16s %s\n", line.ms, 100 * line.share,
                   line.gflops, line.gbytes_per_s, step.kernel.c_str(), line.layout.c_str(),
                   line.shape.c_str(), OneLine(step.name).c_str());
  }
  text += Format("%9.3f ms in %zu steps\n", total, report.profile->steps.size());
  return text;
}

std::string ToJson(const BenchReport& report) {
  const Summary runs = Summarise(report.runs_ms);
  std::string json =
      StrCat("{\"model\": ", JsonString(report.model), ", \"target\": ", JsonString(report.target),
             ", \"threads\": ", report.threads);
  json += Format(", \"load_ms\": %.3f, \"min_ms\": %.4f, \"p50_ms\": %.4f, \"mean_ms\": %.4f",
                 report.load_ms, runs.min, runs.p50, runs.mean);
  json += StrCat(
      ", \"iterations\": ", report.runs_ms.size(), ", \"arena_bytes\": ", report.arena_bytes,
      ", \"weight_bytes\": ", report.weight_bytes, ", \"packed_bytes\": ", report.packed_bytes,
      ", \"peak_rss_bytes\": ", report.peak_rss_bytes,
      ", \"outputs\": ", Array(report.outputs, [](const BenchReport::Output& output) {
        return StrCat(
            "{\"name\": ", JsonString(output.name), ", \"dtype\": \"", output.dtype,
            "\", \"shape\": ", Array(output.shape, [](auto d) { return std::to_string(d); }), "}");
      }));
  if (report.profile) {
    const double total = TotalMs(*report.profile);
    json +=
        ", \"steps\": " + Array(report.profile->steps, [&](const RunProfile::Step& step) {
          const StepLine line(step, total);
          return StrCat("{\"node\": ", JsonString(step.name), ", \"type\": ", JsonString(step.type),
                        ", \"kernel\": ", JsonString(step.kernel), ", \"layout\": \"", line.layout,
                        "\", \"shape\": \"", line.shape, "\"") +
                 Format(
                     ", \"start_ms\": %.4f, \"ms\": %.4f, \"share\": %.4f, \"gflops\": %.2f"
                     ", \"gbytes_per_s\": %.2f}",
                     step.start_ms, line.ms, line.share, line.gflops, line.gbytes_per_s);
        });
  }
  return json + "}\n";
}

std::string ToTrace(const BenchReport& report) {
  std::vector<std::string> events = {StrCat(
      "{\"ph\": \"M\", \"pid\": 1, \"tid\": 1, \"name\": \"process_name\", \"args\": {\"name\": ",
      JsonString(report.model), "}}")};
  for (const RunProfile::Step& step :
       report.profile ? report.profile->steps : std::vector<RunProfile::Step>()) {
    events.push_back(StrCat("{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"name\": ",
                            JsonString(step.kernel), ", \"cat\": ", JsonString(step.type)) +
                     Format(", \"ts\": %.3f, \"dur\": %.3f", step.start_ms * 1e3,
                            (step.end_ms - step.start_ms) * 1e3) +
                     StrCat(", \"args\": {\"node\": ", JsonString(step.name), ", \"output\": \"",
                            step.output.shape, "\"}}"));
  }
  return StrCat("{\"traceEvents\": ",
                Array(events, [](const std::string& event) { return "\n" + event; }), "}\n");
}

}  // namespace tessera
