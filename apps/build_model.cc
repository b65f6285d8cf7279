// build-model NAME OUT.onnx: writes one of the networks of models/ as ONNX.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "models/networks.h"
#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"

namespace tessera {
namespace {

enum ExitCode { kComplete = 0, kFailed = 1, kUsage = 2 };

struct Options {
  std::string network;
  std::filesystem::path out;
  std::uint64_t seed = 1;
  std::filesystem::path weights;
  bool half = false;
  bool list = false;
};

void ListNetworks() {
  for (const NetworkDef& network : Networks()) {
    std::cout << std::left << std::setw(25) << network.name << std::right << std::setw(9)
              << CountParameters(network) << "  " << network.description << "\n";
  }
}

std::vector<float> ReadFloats(const std::filesystem::path& path) {
  return NamingFile(path, [&] {
    std::ifstream file(path, std::ios::binary);
    Require(file.is_open(), std::strerror(errno));
    std::ostringstream content;
    content << file.rdbuf();
    Require(content.good(), "empty, or not a file");
    const std::string bytes = std::move(content).str();
    Require(bytes.size() % sizeof(float) == 0, "not a list of float32 values (", bytes.size(),
            " bytes)");
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  });
}

onnx::ModelProto Build(const Options& options, const NetworkDef& network) {
  const WeightStorage storage = options.half ? WeightStorage::kFloat16 : WeightStorage::kFloat32;
  if (options.weights.empty()) {
    SeededWeights weights(options.seed);
    return BuildNetwork(network, weights, storage);
  }
  std::vector<float> values = ReadFloats(options.weights);
  const auto wanted = static_cast<std::size_t>(CountParameters(network));
  Require(values.size() == wanted, DisplayName(options.weights), ": ", values.size(), " weights, ",
          network.name, " takes ", wanted);
  ListedWeights weights(std::move(values));
  return BuildNetwork(network, weights, storage);
}

void Write(const std::filesystem::path& path, const std::string& bytes) {
  NamingFile(path, [&] {
    AtomicFile file(path);
    std::fwrite(bytes.data(), 1, bytes.size(), file.stream());
    file.Commit();
  });
}

int Run(const Options& options) {
  if (options.list) {
    ListNetworks();
    return kComplete;
  }
  const NetworkDef* network = FindNetwork(options.network);
  if (network == nullptr) {
    std::cerr << "build-model: no network '" << DisplayName(options.network)
              << "'; --list names them\n";
    return kUsage;
  }
  try {
    Write(options.out, Build(options, *network).SerializeAsString());
  } catch (const Error& error) {
    std::cerr << "build-model: " << error.what() << "\n";
    return kFailed;
  }
  return kComplete;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  tessera::Options options;
  CLI::App app("Writes a network as an ONNX model.", "build-model");
  const auto* list = app.add_flag("--list", options.list, "List names, weights and descriptions");
  auto* network = app.add_option("NAME", options.network, "Network; --list names them");
  auto* out = app.add_option("OUT", options.out, "The model to write");
  auto* seed = app.add_option("--seed", options.seed, "Seed of the weights")->capture_default_str();
  app.add_option("--weights", options.weights,
                 "Trained weights instead: little-endian float32 values in network order")
      ->excludes(seed);
  app.add_flag("--fp16", options.half, "Store the weights as float16");
  try {
    app.parse(argc, argv);
    if (list->count() == 0 && (network->count() == 0 || out->count() == 0)) {
      throw CLI::RequiredError("NAME and OUT");
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? tessera::kComplete : tessera::kUsage;
  }
  return tessera::Run(options);
}
