// From the two files of an ncnn model to a Graph.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "engine/graph.h"

namespace tessera {

// Reads the text of a network (.param) and its weights (.bin), as ncnn's converters write them.
// Layers become operators of ONNX, so that nothing else has to know where a model comes from; blobs
// get a batch axis of 1 in front of ncnn's own, a picture is [1, c, h, w]. Float16, int8 and
// table-coded weights become float32. Inputs and outputs have the names of their blobs; outputs are
// those that no layer reads. Where the file does not say how many channels an input has, the first
// convolution that reads it does; inputs of which nothing is known are pictures.
//
// Throws Error, which names file, line and layer, for files that are no such network, are too short
// or too long, for parameters that are not known, and one Error that lists all layers that are not
// supported.
Graph ImportNcnn(const std::filesystem::path& param, const std::filesystem::path& bin);

// The same from memory; `name` stands for the text's file in messages.
Graph ImportNcnn(std::string_view param, std::span<const std::byte> bin, const std::string& name);

}  // namespace tessera
