// Operators with bad attributes, shapes and values. Whatever a model and its inputs say, the engine
// answers with a result or an Error, soon, and within the memory that it is allowed.
//
// ONNX's own backend tests are what is spoiled, one thing at a time: they have every operator, with
// inputs that fit. Every case runs in a process of its own kind (a fork for each test of ONNX), so
// that one that ends it is reported by name, and the rest is done. Of the 200,000 cases few are
// run; $TESSERA_HOSTILE_STRIDE=1 runs all.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/onnx_tensor.h"
#include "engine/session.h"
#include "engine/unsupported.h"
#include "ops/parallel.h"
#include "simd/memory_limit.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kNastyInts[] = {
    kLow,      kLow + 1, -(std::int64_t{1} << 32), -1000, -1, 0, 1, 3, 1000, 1LL << 31, 1LL << 40,
    kHigh - 1, kHigh};
const float kNastyFloats[] = {0.0f,
                              -1.0f,
                              1e-38f,
                              3e38f,
                              -3e38f,
                              std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()};

constexpr std::size_t kAllowed = std::size_t{256} << 20;
// Of the CPU; most of it is for a loop that does not end.
constexpr itimerval kMostTime = {.it_interval = {}, .it_value = {.tv_sec = 20, .tv_usec = 0}};

// A network with the inputs that it is to be run on.
struct Model {
  onnx::ModelProto proto;
  std::vector<onnx::TensorProto> inputs;
};

struct Case {
  std::string what;
  std::function<void(Model&)> spoil;
};

template <typename Proto>
bool Read(const fs::path& path, Proto& proto) {
  std::ifstream in(path, std::ios::binary);
  return in.good() && proto.ParseFromIstream(&in);
}

// False for tests of what is no tensor.
bool Read(const fs::path& folder, Model& model) {
  if (!Read(folder / "model.onnx", model.proto)) return false;
  for (int i = 0; i < model.proto.graph().input_size(); ++i) {
    const fs::path file = folder / "test_data_set_0" / StrCat("input_", i, ".pb");
    onnx::TensorProto tensor;
    if (!model.proto.graph().input(i).type().has_tensor_type() || !Read(file, tensor)) return false;
    model.inputs.push_back(std::move(tensor));
    // Shapes are to be spoiled; what is declared of them would be in the way.
    auto& input = *model.proto.mutable_graph()->mutable_input(i);
    input.mutable_type()->mutable_tensor_type()->clear_shape();
  }
  return true;
}

std::size_t ElementBytes(const onnx::TensorProto& t) {
  std::size_t elements = 1;
  for (const std::int64_t d : t.dims()) elements *= static_cast<std::size_t>(d);
  return elements == 0 ? 0 : t.raw_data().size() / elements;
}

template <typename T>
void Fill(onnx::TensorProto& tensor, T value, int at) {
  std::string& raw = *tensor.mutable_raw_data();
  for (std::size_t i = 0; i < raw.size() / sizeof(T); ++i) {
    if (at >= 0 && i != static_cast<std::size_t>(at)) continue;
    std::memcpy(raw.data() + i * sizeof(T), &value, sizeof(T));
  }
}

// Element `at`, or all if that is negative.
void Fill(onnx::TensorProto& tensor, std::int64_t value, int at) {
  if (tensor.data_type() == onnx::TensorProto::INT64) {
    Fill<std::int64_t>(tensor, value, at);
  } else if (tensor.data_type() == onnx::TensorProto::INT32) {
    Fill<std::int32_t>(tensor, static_cast<std::int32_t>(value), at);
  }
}

// Another shape, filled with the old values over and over.
void Reshape(onnx::TensorProto& tensor, const std::vector<std::int64_t>& dims) {
  const std::size_t element = ElementBytes(tensor);
  const std::string old = tensor.raw_data();
  std::size_t bytes = element;
  tensor.clear_dims();
  for (const std::int64_t d : dims) {
    tensor.add_dims(d);
    bytes *= static_cast<std::size_t>(d);
  }
  std::string raw(bytes, '\0');
  for (std::size_t i = 0; i < bytes && !old.empty(); ++i) raw[i] = old[i % old.size()];
  tensor.set_raw_data(raw);
}

std::vector<std::vector<std::int64_t>> NastyShapes(const onnx::TensorProto& tensor) {
  const std::vector<std::int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  std::vector<std::vector<std::int64_t>> shapes = {{}, {0}, {1}, {1, 1, 1, 1, 1, 1, 1, 1}};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    for (const std::int64_t d : {std::int64_t{0}, std::int64_t{1}, dims[i] - 1, dims[i] + 1}) {
      std::vector<std::int64_t> other = dims;
      other[i] = std::max<std::int64_t>(d, 0);
      if (other != dims) shapes.push_back(other);
    }
  }
  if (!dims.empty()) shapes.emplace_back(dims.begin(), dims.end() - 1);
  if (dims.size() < 8) {
    shapes.push_back(dims);
    shapes.back().insert(shapes.back().begin(), 2);
  }
  return shapes;
}

onnx::AttributeProto& At(Model& model, int node, int attribute) {
  return *model.proto.mutable_graph()->mutable_node(node)->mutable_attribute(attribute);
}

void AddAttributeCases(const Model& model, int n, std::vector<Case>& cases) {
  using A = onnx::AttributeProto;
  const onnx::NodeProto& node = model.proto.graph().node(n);
  for (int a = 0; a < node.attribute_size(); ++a) {
    const A& attribute = node.attribute(a);
    const std::string& name = attribute.name();
    cases.push_back(
        {StrCat("without ", name), [n, a](Model& m) {
           m.proto.mutable_graph()->mutable_node(n)->mutable_attribute()->DeleteSubrange(a, 1);
         }});
    if (attribute.type() == A::INT) {
      for (const std::int64_t v : kNastyInts) {
        cases.push_back({StrCat(name, " = ", v), [n, a, v](Model& m) { At(m, n, a).set_i(v); }});
      }
    } else if (attribute.type() == A::FLOAT) {
      for (const float v : kNastyFloats) {
        cases.push_back({StrCat(name, " = ", v), [n, a, v](Model& m) { At(m, n, a).set_f(v); }});
      }
    } else if (attribute.type() == A::INTS) {
      cases.push_back({StrCat("empty ", name), [n, a](Model& m) { At(m, n, a).clear_ints(); }});
      cases.push_back(
          {StrCat("one more in ", name), [n, a](Model& m) { At(m, n, a).add_ints(1); }});
      for (int i = 0; i < attribute.ints_size(); ++i) {
        for (const std::int64_t v : kNastyInts) {
          cases.push_back({StrCat(name, "[", i, "] = ", v),
                           [n, a, i, v](Model& m) { At(m, n, a).set_ints(i, v); }});
        }
      }
      for (const std::int64_t v : kNastyInts) {
        cases.push_back({StrCat("all of ", name, " = ", v), [n, a, v](Model& m) {
                           for (auto& value : *At(m, n, a).mutable_ints()) value = v;
                         }});
      }
    } else if (attribute.type() == A::FLOATS) {
      cases.push_back({StrCat("empty ", name), [n, a](Model& m) { At(m, n, a).clear_floats(); }});
      for (const float v : kNastyFloats) {
        cases.push_back({StrCat("all of ", name, " = ", v), [n, a, v](Model& m) {
                           for (auto& value : *At(m, n, a).mutable_floats()) value = v;
                         }});
      }
    } else if (attribute.type() == A::STRING) {
      for (const char* v : {"", "x", "->", ",", "i,j->k", "...", "i...i,->i", "ii->i", "\xFF\xFE",
                            "abcdefghijklm,n->", "A->AA", " - > "}) {
        cases.push_back(
            {StrCat(name, " = '", v, "'"), [n, a, v](Model& m) { At(m, n, a).set_s(v); }});
      }
    }
  }
}

// Those that ONNX has, whether the operator knows them or not.
void AddNewAttributeCases(const Model& model, int n, std::vector<Case>& cases) {
  const onnx::NodeProto& node = model.proto.graph().node(n);
  const auto is_there = [&node](const std::string& name) {
    return std::ranges::any_of(node.attribute(), [&](const auto& a) { return a.name() == name; });
  };
  for (const char* name : {"axis",
                           "group",
                           "batch_dims",
                           "hidden_size",
                           "blocksize",
                           "keepdims",
                           "k",
                           "dtype",
                           "to",
                           "ceil_mode",
                           "block_size",
                           "num_groups",
                           "num_outputs",
                           "start",
                           "end",
                           "size",
                           "p",
                           "sampling_ratio",
                           "output_height",
                           "storage_order",
                           "allowzero",
                           "exclusive"}) {
    if (is_there(name)) continue;
    for (const std::int64_t v : kNastyInts) {
      cases.push_back({std::string("new ") + StrCat(name, " = ", v), [n, name, v](Model& m) {
                         auto* a = m.proto.mutable_graph()->mutable_node(n)->add_attribute();
                         a->set_name(name);
                         a->set_type(onnx::AttributeProto::INT);
                         a->set_i(v);
                       }});
    }
  }
  for (const char* name : {"axes", "strides", "pads", "dilations", "kernel_shape", "perm",
                           "output_padding", "output_shape", "split", "steps"}) {
    if (is_there(name)) continue;
    for (const std::int64_t v : kNastyInts) {
      for (const int count : {1, 2, 4}) {
        cases.push_back(
            {StrCat("new ", name, " of ", count, " = ", v), [n, name, v, count](Model& m) {
               auto* a = m.proto.mutable_graph()->mutable_node(n)->add_attribute();
               a->set_name(name);
               a->set_type(onnx::AttributeProto::INTS);
               for (int i = 0; i < count; ++i) a->add_ints(v);
             }});
      }
    }
  }
}

// The cases of an input, whose value the plan knows (`constant`) or the run alone.
void AddInputCases(const Model& model, std::size_t i, bool constant, std::vector<Case>& cases) {
  const onnx::TensorProto& tensor = model.inputs[i];
  const std::string name = StrCat(constant ? "constant " : "", "input ", i);
  const auto add = [&](const std::string& what, std::function<void(onnx::TensorProto&)> spoil) {
    cases.push_back({StrCat(name, ": ", what), [i, constant, spoil = std::move(spoil)](Model& m) {
                       spoil(m.inputs[i]);
                       if (!constant) return;
                       auto& graph = *m.proto.mutable_graph();
                       auto& initializer = *graph.add_initializer();
                       initializer = m.inputs[i];
                       initializer.set_name(graph.input(static_cast<int>(i)).name());
                       graph.mutable_input()->DeleteSubrange(static_cast<int>(i), 1);
                       m.inputs.erase(m.inputs.begin() + static_cast<std::ptrdiff_t>(i));
                     }});
  };
  add("as it is", [](onnx::TensorProto&) {});
  const std::int32_t type = tensor.data_type();
  if (type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32) {
    for (const std::int64_t v : kNastyInts) {
      add(StrCat("all = ", v), [v](onnx::TensorProto& t) { Fill(t, v, -1); });
      for (int at = 0; at < 2; ++at) {
        add(StrCat("[", at, "] = ", v), [v, at](onnx::TensorProto& t) { Fill(t, v, at); });
      }
    }
  } else if (type == onnx::TensorProto::FLOAT) {
    for (const float v : kNastyFloats) {
      add(StrCat("all = ", v), [v](onnx::TensorProto& t) { Fill(t, v, -1); });
      add(StrCat("[0] = ", v), [v](onnx::TensorProto& t) { Fill(t, v, 0); });
    }
  }
  for (const std::vector<std::int64_t>& shape : NastyShapes(tensor)) {
    add(StrCat("shape ", Shape(shape)), [shape](onnx::TensorProto& t) { Reshape(t, shape); });
  }
}

std::vector<Case> Cases(const Model& model) {
  std::vector<Case> cases;
  for (int n = 0; n < model.proto.graph().node_size(); ++n) {
    AddAttributeCases(model, n, cases);
    AddNewAttributeCases(model, n, cases);
  }
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    if (model.inputs[i].raw_data().empty()) continue;
    AddInputCases(model, i, false, cases);
    AddInputCases(model, i, true, cases);
  }
  return cases;
}

// Loads and runs the network; Errors are as good as results.
void Run(const Model& model, bool reference) {
  try {
    const std::string bytes = model.proto.SerializeAsString();
    const auto session = Session::LoadFromMemory(
        std::as_bytes(std::span(bytes)), "hostile.onnx",
        {.reference = reference, .max_memory = AllocatedMemory() + kAllowed});
    std::vector<Tensor> inputs, outputs;
    std::vector<NamedView> views;
    for (const onnx::TensorProto& input : model.inputs) {
      inputs.push_back(ReadTensor(input, {}, "input"));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      views.push_back({session->inputs()[i].name, inputs[i].view()});
    }
    SerialParallel serial;
    session->Run(views, outputs, &serial);
  } catch (const Error&) {
  }
}

// What a child tells its parent.
struct Report {
  std::size_t next;  // the case to go on with
  char text[1000];   // what is being done, then what was wrong
};

// Runs the cases from `first` on, in a child. Returns what went wrong, empty if nothing did, and
// leaves in `report` where to go on.
std::string RunCases(const Model& model, std::span<const Case> cases, std::size_t stride,
                     Report& report) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (std::size_t c = report.next; c < cases.size(); c += stride) {
      report.next = c + stride;
      Model spoiled = model;
      cases[c].spoil(spoiled);
      for (const bool reference : {true, false}) {
        std::snprintf(report.text, sizeof(report.text), "%s%s", cases[c].what.c_str(),
                      reference ? " (reference)" : "");
        ::setitimer(ITIMER_VIRTUAL, &kMostTime, nullptr);
        try {
          Run(spoiled, reference);
        } catch (const std::exception& e) {
          std::snprintf(report.text, sizeof(report.text), "%s: no Error but '%s'",
                        cases[c].what.c_str(), e.what());
          ::_exit(1);
        }
      }
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    report.next = cases.size();
    return {};
  }
  return std::string(report.text) +
         (WIFSIGNALED(status) ? std::string(": ") + ::strsignal(WTERMSIG(status)) : "");
}

// One of so many cases is run.
std::size_t Stride() {
  const char* stride = std::getenv("TESSERA_HOSTILE_STRIDE");
  return stride != nullptr ? static_cast<std::size_t>(std::max(1, std::atoi(stride))) : 499;
}

TEST(HostileOperators, EndInAResultOrAnError) {
  const fs::path data = fs::path(TESSERA_ONNX_TEST_DATA) / "node";
  if (!fs::is_directory(data)) GTEST_SKIP() << data << " is not there (libonnx-testdata)";
  const char* only = std::getenv("TESSERA_HOSTILE_ONLY");  // a part of a test's name
  void* shared =
      ::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Report& report = *static_cast<Report*>(shared);
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(data)) folders.push_back(entry.path());
  std::ranges::sort(folders);
  std::size_t run = 0, seed = 0;
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename().string();
    if (only != nullptr && name.find(only) == std::string::npos) continue;
    Model model;
    if (!Read(folder, model)) continue;
    const std::vector<Case> cases = Cases(model);
    const std::size_t stride = Stride();
    report = {};
    report.next = seed++ % stride;  // other cases of the next test
    run += cases.size() / stride;
    for (int failures = 0; report.next < cases.size() && failures < 20; ++failures) {
      const std::string failure = RunCases(model, cases, stride, report);
      EXPECT_EQ(failure, "") << "of " << name;
    }
  }
  ::munmap(shared, sizeof(Report));
  RecordProperty("cases", static_cast<int>(run));
  EXPECT_GT(run, 0u);
}

}  // namespace
}  // namespace tessera
