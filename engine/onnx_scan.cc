#include "engine/onnx_scan.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <limits>

#include "engine/model_limits.h"
#include "ops/error.h"
#include "simd/memory_limit.h"

namespace tessera {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// About what protobuf allocates for a message or a string, however short.
constexpr std::uint64_t kBytesPerField = 128;
// A number by itself: of an unknown field, protobuf keeps field and value.
constexpr std::uint64_t kBytesPerNumber = 16;
// Integers of one byte each in the file, of eight in memory.
constexpr std::uint64_t kMostGrowth = 8;
constexpr std::uint64_t kCheckEvery = std::uint64_t{1} << 24;
// Of messages in messages; protobuf itself goes no deeper.
constexpr int kMaxDepth = 100;

class Scanner {
 public:
  Scanner(CodedInputStream& in, const std::string& file) : in_(in), file_(file) {}

  // One message, to the stream's limit. False if it is none.
  bool Scan(const Descriptor& message, int depth, int nesting) {
    if (depth > kMaxDepth) return false;
    const bool is_graph = message.full_name() == "onnx.GraphProto";
    if (is_graph) {
      Require(nesting <= kMaxNesting, file_, ": its bodies (of If or Loop) are nested more than ",
              kMaxNesting, " deep");
      ++nesting;
    }
    while (const std::uint32_t tag = in_.ReadTag()) {
      const auto type = WireFormatLite::GetTagWireType(tag);
      if (type != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        // ONNX has no groups. Parsing would keep all that is in one.
        Require(type != WireFormatLite::WIRETYPE_START_GROUP, file_,
                ": not an ONNX model, or unreadable (it holds groups)");
        if (!WireFormatLite::SkipField(&in_, tag)) return false;
        Count(kBytesPerNumber);
        continue;
      }
      std::uint32_t length = 0;
      if (!in_.ReadVarint32(&length) || length > std::numeric_limits<int>::max()) return false;
      const FieldDescriptor* field =
          message.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE) {
        const Descriptor& inner = *field->message_type();
        if (inner.full_name() == "onnx.NodeProto") {
          Require(++nodes_ <= kMaxNodes, file_, ": has more than ", kMaxNodes, " nodes");
        }
        Count(kBytesPerField);
        const auto outer = in_.PushLimit(static_cast<int>(length));
        if (!Scan(inner, depth + 1, nesting) || in_.BytesUntilLimit() != 0) return false;
        in_.PopLimit(outer);
        continue;
      }
      const bool is_integers = field != nullptr && field->is_packable() &&
                               field->cpp_type() != FieldDescriptor::CPPTYPE_FLOAT &&
                               field->cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE;
      Count(is_integers ? length * kMostGrowth : kBytesPerField + length);
      if (!in_.Skip(static_cast<int>(length))) return false;
    }
    return in_.ConsumedEntireMessage();
  }

 private:
  void Count(std::uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ >= next_check_) {
      MemoryScope::Check(bytes_);
      next_check_ = bytes_ + kCheckEvery;
    }
  }

  CodedInputStream& in_;
  const std::string& file_;
  std::int64_t nodes_ = 0;
  std::uint64_t bytes_ = 0, next_check_ = kCheckEvery;
};

}  // namespace

void ScanOnnx(google::protobuf::io::ZeroCopyInputStream& bytes, const std::string& file) {
  CodedInputStream in(&bytes);
  Scanner(in, file).Scan(*onnx::ModelProto::descriptor(), 0, 0);
}

}  // namespace tessera
