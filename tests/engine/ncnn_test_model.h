// Small ncnn models for tests: a line a layer, and the bytes of their weights.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/ncnn_import.h"
#include "engine/onnx_export.h"
#include "engine/session.h"
#include "ops/error.h"

namespace tessera {

class NcnnTestModel {
 public:
  static constexpr std::uint32_t kFloat32 = 0, kFloat16 = 0x01306B47, kInt8 = 0x000D4B38,
                                 kTaggedFloat32 = 0x0002C056;

  // "Type name inputs outputs blobs... params...", as the file has it.
  NcnnTestModel& Layer(const std::string& line) {
    lines_.push_back(line);
    return *this;
  }
  // A picture [c, h, w], called `name`.
  NcnnTestModel& Input(const std::string& name, const Shape& blob) {
    constexpr const char* kIds[] = {"0", "1", "2", "11"};
    std::string line = "Input " + name + " 0 1 " + name;
    for (int i = 0; i < blob.rank(); ++i) {
      // The third axis from the end is the depth where there are four.
      const int id = i == 2 && blob.rank() == 4 ? 3 : i == 3 ? 2 : i;
      line += StrCat(" ", kIds[id], "=", blob[blob.rank() - 1 - i]);
    }
    return Layer(line);
  }
  NcnnTestModel& Floats(const std::vector<float>& values) {
    return Bytes(values.data(), values.size() * sizeof(float));
  }
  // Weights that say how they are stored.
  NcnnTestModel& Weights(const std::vector<float>& values, std::uint32_t tag = kFloat32) {
    Bytes(&tag, sizeof(tag));
    return Floats(values);
  }
  NcnnTestModel& Int8Weights(const std::vector<std::int8_t>& values) {
    Bytes(&kInt8, sizeof(kInt8));
    return Bytes(values.data(), values.size()).Align();
  }
  NcnnTestModel& Float16Weights(const std::vector<float>& values) {
    Bytes(&kFloat16, sizeof(kFloat16));
    for (float v : values) {
      const std::uint16_t half = FloatToHalf(v);
      Bytes(&half, sizeof(half));
    }
    return Align();
  }
  NcnnTestModel& TableWeights(std::uint32_t tag, const std::vector<float>& table,
                              const std::vector<std::uint8_t>& indices) {
    Bytes(&tag, sizeof(tag));
    std::vector<float> all = table;
    all.resize(256);
    return Floats(all).Bytes(indices.data(), indices.size()).Align();
  }
  NcnnTestModel& Bytes(const void* data, std::size_t n) {
    bin_.append(static_cast<const char*>(data), n);
    return *this;
  }
  NcnnTestModel& Align() {
    while (bin_.size() % 4 != 0) bin_ += '\0';
    return *this;
  }

  std::string Text() const {
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return StrCat("7767517\n", lines_.size(), " ", 100, "\n", text);
  }
  const std::string& bin() const { return bin_; }

  Graph Import() const { return ImportNcnn(Text(), std::as_bytes(std::span(bin_)), "test.param"); }

  // By way of an ONNX file, so that every test of a layer is one of the export, too.
  std::shared_ptr<Session> Load(const SessionOptions& options = {}) const {
    const std::string onnx = ExportOnnx(Import());
    return Session::LoadFromMemory(std::as_bytes(std::span(onnx)), "test.param", options);
  }

  struct Result {
    Shape shape;  // with the batch
    std::vector<float> values;
  };
  // Output 0 for inputs (blobs without the batch) in the order of the file.
  Result Run(const std::vector<std::pair<Shape, std::vector<float>>>& blobs,
             std::size_t output = 0) const {
    const std::shared_ptr<Session> session = Load();
    std::vector<Tensor> tensors, outputs;
    std::vector<NamedView> views;
    for (const auto& [blob, values] : blobs) {
      Shape shape{1};
      for (std::int64_t d : blob) shape.PushBack(d);
      tensors.push_back(Tensor::FromVector(shape, values));
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      views.push_back({session->inputs()[i].name, tensors[i].view()});
    }
    session->Run(views, outputs);
    const TensorView& out = outputs.at(output).view();
    if (out.dtype == DType::kFloat32) return {out.shape, ToFloats(out)};
    const std::vector<std::int64_t> integers = ToInt64s(out);
    return {out.shape, {integers.begin(), integers.end()}};
  }

  // The message of the Error that the import gives.
  std::string Failure() const {
    try {
      Import();
    } catch (const Error& e) {
      return e.what();
    }
    return "(no error)";
  }

 private:
  std::vector<std::string> lines_;
  std::string bin_;
};

}  // namespace tessera
