// onnx-bench: runs and times a network, writes its outputs, or the network itself as ONNX.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "apps/backend_tests.h"
#include "apps/bench_input.h"
#include "apps/bench_passes.h"
#include "apps/bench_report.h"
#include "apps/program.h"
#include "apps/target_option.h"
#include "engine/model_file.h"
#include "engine/onnx_export.h"
#include "engine/session.h"
#include "engine/thread_team.h"
#include "ops/error.h"
#include "ops/op.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/require_system.h"
#include "simd/cpu_target.h"
#include "simd/memory_limit.h"

namespace tessera {
namespace {

struct Arguments {
  std::string model;
  std::vector<std::string> inputs, disabled_passes;
  int threads = 1, iterations = 1, warmup = 0;
  std::size_t max_memory_mb = 0;  // 0: DefaultMaxMemory
  std::string dump, trace, export_to;
  std::string backend_tests, filter;
  bool reference = false, profile = false, json = false, ops = false, passes = false;
};

using Clock = std::chrono::steady_clock;

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The most memory that this process has had (getrusage would count its parent's too).
std::size_t PeakRssBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

void WriteFile(const std::filesystem::path& path, std::span<const char> bytes) {
  NamingFile(path, [&] {
    std::ofstream out(path, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    RequireSystem(!out.fail(), "cannot write");
  });
}

void Print(const std::string& text) {
  Require(std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0,
          "standard output cannot be written");
}

// Writes the model as it was read, without any rewriting, as ONNX.
void Export(const std::filesystem::path& model, const std::filesystem::path& to) {
  // All files that the model may have been read from.
  std::vector<std::filesystem::path> files = {model, NcnnTextFile(model), NcnnWeightsFile(model)};
  for (const char* extension : {".onnx", ".param", ".bin"}) {
    files.push_back(std::filesystem::path(model) += extension);
  }
  const bool same = std::ranges::any_of(files, [&to](const std::filesystem::path& file) {
    std::error_code error;
    return std::filesystem::equivalent(file, to, error);
  });
  const std::string bytes = ExportOnnx(ImportModel(model));
  NamingFile(to, [&] {
    Require(!same, "is the model itself");
    // Whatever else the model was read from (external data) has another name.
    Require(to.extension() == ".onnx", "the name of an ONNX file has to end with .onnx");
    AtomicFile file(to);
    RequireSystem(std::fwrite(bytes.data(), 1, bytes.size(), file.stream()) == bytes.size(),
                  "cannot write");
    file.Commit();
  });
}

// The shapes in the session's order.
std::vector<Shape> ShapesOf(const Session& session, const std::vector<BenchInput>& inputs) {
  std::vector<Shape> shapes;
  for (const ValueDecl& decl : session.inputs()) {
    const auto input = std::ranges::find(inputs, decl.name, &BenchInput::name);
    if (input != inputs.end()) shapes.push_back(input->tensor.shape());
  }
  return shapes;
}

std::vector<float> AsFloats(const TensorView& t) {
  if (t.dtype == DType::kFloat16 || t.dtype == DType::kFloat32 || t.dtype == DType::kFloat64) {
    return ToFloats(t);
  }
  const std::vector<std::int64_t> integers = ToInt64s(t);
  return {integers.begin(), integers.end()};
}

// Every output as FOLDER/NAME.f32.
void Dump(const Session& session, const std::vector<Tensor>& outputs,
          const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  Require(!error, DisplayName(folder), ": cannot create this folder: ", error.message());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::string name = session.outputs()[i].name;
    std::ranges::replace_if(
        name, [](unsigned char c) { return !std::isalnum(c) && c != '_' && c != '.' && c != '-'; },
        '_');
    const std::vector<float> values = AsFloats(outputs[i].view());
    WriteFile(folder / (name + ".f32"),
              {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
}

void Run(const Arguments& arguments) {
  if (!arguments.export_to.empty()) return Export(arguments.model, arguments.export_to);
  BenchReport report;
  report.model = std::filesystem::path(arguments.model).filename();
  report.target = CpuTargetName();
  report.threads = arguments.threads;
  const Clock::time_point load_start = Clock::now();
  const auto session = Session::Load(arguments.model, {.disabled_passes = arguments.disabled_passes,
                                                       .reference = arguments.reference});
  report.load_ms = MsSince(load_start);

  std::vector<BenchInput> inputs;
  std::vector<NamedView> views;
  for (const std::string& spec : arguments.inputs) {
    inputs.push_back(MakeBenchInput(spec, *session));
  }
  if (arguments.passes) return Print(PassTable(*session, inputs));
  for (const BenchInput& input : inputs) views.push_back({input.name, input.tensor.view()});

  ThreadTeam team(arguments.threads);
  std::vector<Tensor> outputs;
  const std::vector<Shape> shapes = ShapesOf(*session, inputs);
  const Clock::time_point plan_start = Clock::now();
  report.arena_bytes = session->ArenaBytes(shapes);
  report.load_ms += MsSince(plan_start);
  for (int i = 0; i < arguments.warmup + arguments.iterations; ++i) {
    const Clock::time_point start = Clock::now();
    session->Run(views, outputs, &team);
    if (i >= arguments.warmup) report.runs_ms.push_back(MsSince(start));
  }
  std::ranges::sort(report.runs_ms);
  report.weight_bytes = session->WeightBytes();
  report.packed_bytes = session->PackedBytes();
  report.peak_rss_bytes = PeakRssBytes();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    report.outputs.push_back({session->outputs()[i].name, outputs[i].dtype(), outputs[i].shape()});
  }
  if (arguments.profile || !arguments.trace.empty()) {
    RunProfile profile;
    session->Run(views, outputs, &team, &profile);
    report.profile = std::move(profile);
  }
  if (!arguments.dump.empty()) Dump(*session, outputs, arguments.dump);
  if (!arguments.trace.empty()) WriteFile(arguments.trace, ToTrace(report));
  if (!arguments.profile) report.profile.reset();
  Print(arguments.json ? ToJson(report) : ToText(report));
}

// "Gelu 20-21" for each operator: the opsets of ONNX's default domain in which models may use it.
void PrintOps() {
  std::string text;
  for (const OpDef* op : AllOps()) {
    if (op->internal) continue;
    text += StrCat(op->type, " ", std::max(op->first_opset, kMinOpset), "-", op->last_opset, "\n");
  }
  Print(text);
}

// Returns the exit code.
int RunBackendTests(const Arguments& arguments) {
  std::vector<BackendTest> tests = FindBackendTests(arguments.backend_tests);
  Require(!tests.empty(), DisplayName(arguments.backend_tests), ": holds no backend tests");
  std::erase_if(tests, [&](const BackendTest& test) {
    return test.name.find(arguments.filter) == std::string::npos;
  });
  Require(!tests.empty(), "--filter ", arguments.filter, ": fits no test");
  ThreadTeam team(arguments.threads);
  BackendCounts counts;
  for (const BackendTest& test : tests) {
    // The name first, so that it is there should the test end the program.
    Print(DisplayName(test.name) + ": ");
    const BackendResult result = RunBackendTest(test, team);
    counts.Add(result.outcome);
    Print(ToString(result) + "\n");
  }
  Print(ToString(counts) + "\n");
  return counts.failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  tessera::OpenStandardStreams();
  tessera::LoadUnwinder();
  tessera::IgnoreSignalsOfWriting();
  tessera::Arguments arguments;
  CLI::App app("Runs and times an ONNX network.", "onnx-bench");
  CLI::Option* const model = app.add_option("MODEL", arguments.model,
                                            "ONNX file, or one of the two files of an ncnn model");
  // One value each: what follows may be MODEL.
  app.add_option("--input", arguments.inputs,
                 "NAME:1x3x64x64[:FILE], FILE holding raw float32; without it seeded noise")
      ->allow_extra_args(false);
  app.add_option("--threads", arguments.threads, "Threads (default 1)")->check(CLI::Range(1, 1024));
  app.add_option("--iters", arguments.iterations, "Timed runs (default 1)")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--warmup", arguments.warmup, "Runs before those (default 0)")
      ->check(CLI::Range(0, 1000000));
  app.add_option("--max-memory", arguments.max_memory_mb,
                 "MB; networks that would take more are refused (default: 80 % of what there is)")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--dump", arguments.dump, "Folder for the outputs, NAME.f32 each");
  app.add_option("--export", arguments.export_to,
                 "File (.onnx) that the model is written to as ONNX, instead of being run");
  app.add_option("--disable", arguments.disabled_passes, "Passes that must not run, A,B,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--reference", arguments.reference, "Plain reference kernels, no passes (slow)");
  app.add_flag("--profile", arguments.profile, "What each step of one more run took");
  app.add_option("--trace", arguments.trace, "File for that run in the Chrome trace format");
  app.add_flag("--json", arguments.json, "All results as one JSON object");
  CLI::Option* const backend_tests =
      app.add_option("--backend-tests", arguments.backend_tests,
                     "Instead of a model: runs ONNX's backend tests in this folder and below")
          ->excludes(model);
  app.add_flag("--ops", arguments.ops, "Instead: prints the operators, FIRST-LAST opset each")
      ->excludes(model);
  app.add_flag("--passes", arguments.passes,
               "Instead: lists the passes; with MODEL, how often each fires in it")
      ->excludes("--json", "--ops", "--backend-tests", "--export");
  app.add_option("--filter", arguments.filter, "Only those whose names hold this text")
      ->needs(backend_tests);
  tessera::AddTargetOption(app);
  tessera::AddVersionOption(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    return tessera::Fail(tessera::kWrongUsage, error.what());
  }
  try {
    const std::size_t max_memory = arguments.max_memory_mb << 20;
    const tessera::MemoryScope scope(max_memory != 0 ? max_memory : tessera::DefaultMaxMemory());
    if (arguments.ops) {
      tessera::PrintOps();
      return 0;
    }
    if (arguments.passes && arguments.model.empty()) {
      tessera::Print(tessera::PassList());
      return 0;
    }
    if (*backend_tests) return tessera::RunBackendTests(arguments);
    tessera::Require(!arguments.model.empty(), "MODEL is required");
    tessera::Run(arguments);
    return 0;
  } catch (const std::bad_alloc& error) {
    return tessera::Fail(tessera::kWrongUsage, tessera::MemoryMessage(error));
  } catch (const std::exception& error) {
    return tessera::Fail(tessera::kWrongUsage, error.what());
  }
}
