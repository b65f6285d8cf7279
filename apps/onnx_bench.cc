// onnx-bench: runs and times a network, and writes its outputs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "engine/session.h"
#include "engine/thread_team.h"
#include "ops/error.h"
#include "simd/cpu_target.h"

namespace {

using tessera::DType;
using tessera::Error;
using tessera::Require;
using tessera::Shape;
using tessera::StrCat;
using tessera::Tensor;

struct Input {
  std::string name;
  Tensor tensor;
};

double Milliseconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

// Uniform noise in [0, 1), the same on every machine (xorshift32, seed as in the comparison tool
// for ONNX Runtime, so that both see the same numbers).
void FillNoise(Tensor& t) {
  std::uint32_t s = 0x2545f491;
  for (float& v : t.values<float>()) {
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    v = static_cast<float>(s / 4294967296.0);
  }
}

// NAME:1x3x64x64[:FILE], FILE being raw little-endian float32, row-major.
Input ParseInput(const std::string& spec) {
  const std::size_t shape_end = [&] {
    // The shape is the last run of digits and 'x' between colons, since names may hold colons.
    std::size_t colon = spec.find(':');
    while (colon != std::string::npos) {
      const std::size_t end = spec.find(':', colon + 1);
      const std::string part = spec.substr(colon + 1, end - colon - 1);
      if (!part.empty() && part.find_first_not_of("0123456789x") == std::string::npos) return colon;
      colon = end;
    }
    throw Error(StrCat("--input ", spec, ": want NAME:1x3x64x64[:FILE]"));
  }();
  Input input;
  input.name = spec.substr(0, shape_end);
  const std::size_t file_colon = spec.find(':', shape_end + 1);
  Shape shape;
  std::istringstream dims(spec.substr(shape_end + 1, file_colon - shape_end - 1));
  for (std::string d; std::getline(dims, d, 'x');) {
    Require(!d.empty() && d.size() < 10, "--input ", spec, ": want NAME:1x3x64x64[:FILE]");
    shape.PushBack(std::stoll(d));
  }
  input.tensor = Tensor(DType::kFloat32, shape);
  if (file_colon == std::string::npos) {
    FillNoise(input.tensor);
    return input;
  }
  const std::string path = spec.substr(file_colon + 1);
  std::ifstream in(path, std::ios::binary);
  Require(in.good(), path, ": cannot be opened");
  const auto bytes = static_cast<std::streamsize>(input.tensor.bytes());
  in.read(input.tensor.data<char>(), bytes);
  Require(in.gcount() == bytes && in.peek() == std::ifstream::traits_type::eof(), path,
          ": does not have the ", bytes, " bytes of ", shape);
  return input;
}

// The tensor in the type that the model wants for it.
Tensor Convert(const Tensor& from, DType to) {
  if (to == DType::kFloat32 || to == DType::kFloat16) return from.Clone();
  Tensor out(to, from.shape());
  const auto fill = [&]<typename T>(T* p) {
    for (const float v : from.values<float>()) *p++ = static_cast<T>(v);
  };
  switch (to) {
    case DType::kFloat64:
      fill(out.data<double>());
      break;
    case DType::kInt64:
      fill(out.data<std::int64_t>());
      break;
    case DType::kInt32:
      fill(out.data<std::int32_t>());
      break;
    case DType::kInt16:
      fill(out.data<std::int16_t>());
      break;
    case DType::kInt8:
      fill(out.data<std::int8_t>());
      break;
    case DType::kUint8:
      fill(out.data<std::uint8_t>());
      break;
    case DType::kBool:
      fill(out.data<bool>());
      break;
    default:
      throw Error(StrCat("inputs of type ", to, " are not supported"));
  }
  return out;
}

void Dump(const std::filesystem::path& folder, const std::string& name, const Tensor& t) {
  std::filesystem::create_directories(folder);
  std::string file = name;
  for (char& c : file) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '-') c = '_';
  }
  const std::filesystem::path path = folder / (file + ".f32");
  std::ofstream out(path, std::ios::binary);
  const std::vector<float> values = tessera::ToFloats(t.view());
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
  out.close();
  Require(!out.fail(), path.string(), ": cannot be written");
}

// A line for each step, in order, and the total.
void PrintProfile(const tessera::RunProfile& profile) {
  const double total = profile.steps.empty() ? 0 : profile.steps.back().end_ms;
  std::printf("%9s %6s %8s %7s  %-22s %-8s %-16s %s\n", "ms", "share", "GFLOP/s", "GB/s", "kernel",
              "layout", "output", "node");
  for (const auto& step : profile.steps) {
    const double ms = step.end_ms - step.start_ms;
    const bool blocked = step.output.layout == tessera::Layout::kBlocked;
    std::printf("%9.3f %5.1f%% %8.1f %7.1f  %-22s %-8s %-16s %s\n", ms, 100 * ms / total,
                step.flops / ms * 1e-6, static_cast<double>(step.bytes) / ms * 1e-6,
                step.kernel.c_str(),
                blocked ? StrCat("NCHW", tessera::FloatLanes(), "c").c_str() : "NCHW",
                tessera::ToString(step.output.shape).c_str(), step.name.c_str());
  }
  std::printf("%9.3f ms in %zu steps\n", total, profile.steps.size());
}

// The run as chrome://tracing and Perfetto read it (Trace Event Format, complete events).
void WriteTrace(const tessera::RunProfile& profile, const std::string& path) {
  std::ofstream out(path);
  const auto quoted = [](const std::string& s) {
    std::string q = "\"";
    for (const char c : s) {
      if (c == '"' || c == '\\') q += '\\';
      q += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return q + '"';
  };
  out << "{\"traceEvents\":[\n";
  for (const auto& step : profile.steps) {
    out << (&step == &profile.steps.front() ? "" : ",\n")
        << "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":" << quoted(step.kernel)
        << ",\"cat\":" << quoted(step.type) << ",\"ts\":" << step.start_ms * 1e3
        << ",\"dur\":" << (step.end_ms - step.start_ms) * 1e3
        << ",\"args\":{\"node\":" << quoted(step.name)
        << ",\"output\":" << quoted(tessera::ToString(step.output.shape)) << "}}";
  }
  out << "\n]}\n";
  out.close();
  Require(!out.fail(), path, ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs and times an ONNX network"};
  std::string model;
  std::vector<std::string> input_specs, disabled;
  int threads = 1, iterations = 1, warmup = 0;
  std::string dump, trace;
  bool reference = false, profile = false;
  app.add_option("model", model, "ONNX file")->required();
  app.add_option("--input", input_specs,
                 "NAME:1x3x64x64[:FILE], FILE holding raw float32; without it seeded noise")
      ->required();
  app.add_option("--threads", threads, "threads")->check(CLI::Range(1, 1024));
  app.add_option("--iters", iterations, "timed runs")->check(CLI::Range(1, 1000000));
  app.add_option("--warmup", warmup, "runs before that")->check(CLI::Range(0, 1000000));
  app.add_option("--dump", dump, "folder for the outputs, NAME.f32 each");
  app.add_option("--disable", disabled, "passes that must not run")->delimiter(',');
  app.add_flag("--reference", reference, "plain reference kernels, no passes (slow)");
  app.add_flag("--profile", profile, "print what each step of one more run took");
  app.add_option("--trace", trace, "write that run to a file in the Chrome trace format");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }

  try {
    using Clock = std::chrono::steady_clock;
    const auto load_start = Clock::now();
    const auto session =
        tessera::Session::Load(model, {.disabled_passes = disabled, .reference = reference});
    const double load_ms = Milliseconds(Clock::now() - load_start);

    std::vector<Input> inputs;
    std::vector<tessera::NamedView> views;
    for (const std::string& spec : input_specs) inputs.push_back(ParseInput(spec));
    for (Input& input : inputs) {
      for (const tessera::ValueDecl& decl : session->inputs()) {
        if (decl.name == input.name) input.tensor = Convert(input.tensor, decl.dtype);
      }
      views.push_back({input.name, input.tensor.view()});
    }

    tessera::ThreadTeam team(threads);
    std::vector<Tensor> outputs;
    std::vector<double> ms;
    for (int i = 0; i < warmup + iterations; ++i) {
      const auto start = Clock::now();
      session->Run(views, outputs, &team);
      if (i >= warmup) ms.push_back(Milliseconds(Clock::now() - start));
    }
    std::sort(ms.begin(), ms.end());
    std::printf("tessera %s threads=%d load=%.1fms min=%.2fms p50=%.2fms mean=%.2fms iters=%zu\n",
                std::filesystem::path(model).filename().c_str(), threads, load_ms, ms.front(),
                ms[ms.size() / 2],
                std::accumulate(ms.begin(), ms.end(), 0.0) / static_cast<double>(ms.size()),
                ms.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = session->outputs()[i].name;
      std::printf("output %s %s %s\n", name.c_str(), tessera::Name(outputs[i].dtype()),
                  tessera::ToString(outputs[i].shape()).c_str());
      if (!dump.empty()) Dump(dump, name, outputs[i]);
    }
    if (profile || !trace.empty()) {
      tessera::RunProfile run;
      session->Run(views, outputs, &team, &run);
      if (profile) PrintProfile(run);
      if (!trace.empty()) WriteTrace(run, trace);
    }
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "onnx-bench: %s\n", e.what());
    return 2;
  }
}
