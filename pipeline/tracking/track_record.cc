#include "pipeline/tracking/track_record.h"

#include <cmath>
#include <string>

#include "ops/error.h"
#include "pipeline/format_text.h"
#include "pipeline/text_output.h"

namespace tessera {
namespace {

constexpr int kPixelDecimals = 4, kOtherDecimals = 6;

// Whole numbers in a stream follow the locale, those of to_string do not.
std::string CsvLine(const TrackRecord& record) {
  const Box& box = record.box;
  return StrCat(std::to_string(record.frame), ",", Fixed(record.seconds, kOtherDecimals), ",",
                Fixed(box.x, kPixelDecimals), ",", Fixed(box.y, kPixelDecimals), ",",
                Fixed(box.width, kPixelDecimals), ",", Fixed(box.height, kPixelDecimals), ",",
                Fixed(record.score, kOtherDecimals), ",", record.lost ? 1 : 0, "\n");
}

// JSON has no infinities and no NaN.
std::string JsonNumber(double value, int decimals) {
  return std::isfinite(value) ? Fixed(value, decimals) : "null";
}

std::string JsonObject(const TrackRecord& record) {
  const Box& box = record.box;
  return StrCat("{\"frame\": ", std::to_string(record.frame),
                ", \"time\": ", JsonNumber(record.seconds, kOtherDecimals),
                ", \"x\": ", JsonNumber(box.x, kPixelDecimals),
                ", \"y\": ", JsonNumber(box.y, kPixelDecimals),
                ", \"w\": ", JsonNumber(box.width, kPixelDecimals),
                ", \"h\": ", JsonNumber(box.height, kPixelDecimals),
                ", \"score\": ", JsonNumber(record.score, kOtherDecimals),
                ", \"lost\": ", record.lost ? "true" : "false", "}\n");
}

}  // namespace

struct RecordWriter::Impl {
  TextOutput output;
  RecordFormat format;
  bool first = true;
};

RecordWriter::RecordWriter(const std::filesystem::path& path, RecordFormat format, bool overwrite)
    : impl_(new Impl{.output = {path, overwrite}, .format = format}) {
  impl_->output.Write(format == RecordFormat::kCsv ? "frame,time,x,y,w,h,score,lost\n" : "[\n");
}

RecordWriter::~RecordWriter() = default;

void RecordWriter::Write(const TrackRecord& record) {
  if (impl_->format == RecordFormat::kCsv) {
    impl_->output.Write(CsvLine(record));
  } else {
    // The comma is at the line's beginning: the line is complete before the next record is known.
    impl_->output.Write(StrCat(impl_->first ? "" : ",", JsonObject(record)));
  }
  impl_->first = false;
}

void RecordWriter::Close() {
  if (impl_->format == RecordFormat::kJson) impl_->output.Write("]\n");
  impl_->output.Close();
}

}  // namespace tessera
