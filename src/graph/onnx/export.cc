#include "graph/onnx/export.h"

#include <cstdint>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "base/protobuf.h"
#include "graph/onnx/ops.h"

namespace paceline::graph::onnx {
namespace {

using base::protobuf::add_bytes;
using base::protobuf::add_whole_number;
using base::protobuf::begin_bytes;

// Field numbers of ONNX's messages.
constexpr std::uint64_t kModelFormat = 1, kModelProducer = 2, kModelProducerVersion = 3, kModelText = 6,
                        kModelGraph = 7, kModelOpset = 8, kModelMetadata = 14;
constexpr std::uint64_t kOpsetVersion = 2, kEntryKey = 1, kEntryValue = 2;
constexpr std::uint64_t kGraphName = 2, kGraphInput = 11, kGraphOutput = 12;
constexpr std::uint64_t kValueName = 1, kValueType = 2, kTypeTensor = 1, kTypeElement = 1, kTypeShape = 2;
constexpr std::uint64_t kShapeLength = 1, kLengthValue = 1, kLengthName = 2;
constexpr int kFloat = 1;

constexpr std::int64_t kFormat = 4;  ///< of files, the first with kOpset; since then weights are no inputs
constexpr std::string_view kInput = "input", kOutput = "logits", kBatch = "N";

/// Protobuf's limit, less what names, nodes and texts take.
constexpr std::int64_t kMostWeightBytes = (std::int64_t{1} << 31) - (std::int64_t{16} << 20);

/// An input or output: float [N, lengths..].
std::string described(std::string_view name, const Numbers& lengths) {
  std::string batch, shape, tensor, type, value;
  add_bytes(batch, kLengthName, kBatch);
  add_bytes(shape, kShapeLength, batch);
  for (const auto length : lengths) {
    std::string one;
    add_whole_number(one, kLengthValue, length);
    add_bytes(shape, kShapeLength, one);
  }
  add_whole_number(tensor, kTypeElement, kFloat);
  add_bytes(tensor, kTypeShape, shape);
  add_bytes(type, kTypeTensor, tensor);
  add_bytes(value, kValueName, name);
  add_bytes(value, kValueType, type);
  return value;
}

/// The image as the graph takes it: (image - mean) / stddev of each channel. A batch norm says so: OpenCV 4.6
/// subtracts constants of channels from single images only.
std::string normalised(GraphWriter& to, const std::string& image, const ModelFacts& facts) {
  if (facts.mean.empty()) return image;
  const auto channels = facts.mean.size();
  const auto array = [&](std::string_view name, const std::vector<float>& values) {
    return to.constant(name, {static_cast<std::int64_t>(channels)}, values);
  };
  std::vector<float> variance;
  for (const float deviation : facts.stddev) variance.push_back(deviation * deviation);
  return to.node(
      "BatchNormalization",
      {image, array("ones", std::vector<float>(channels, 1)), array("zeros", std::vector<float>(channels, 0)),
       array("mean", facts.mean), array("variance", variance)},
      "normalised", {{"epsilon", 0.0F}});
}

std::string graph_message(const Graph& graph, const Layout& layout, std::span<const float> weights,
                          const ModelFacts& facts) {
  GraphWriter to;
  const auto input = to.reserve(kInput), output = to.reserve(kOutput);
  const Value image{.name = normalised(to, input, facts)};
  std::vector<Value> values;
  for (const Node& node : graph.nodes) {
    OpToWrite site{.to = to, .graph = graph, .layout = layout, .weights = weights, .node = node, .src = {}};
    if (node.inputs.empty()) site.src.push_back(image);
    for (const int from : node.inputs) site.src.push_back(values[static_cast<std::size_t>(from)]);
    values.push_back(std::visit([&](const auto& op) { return write_op(site, op); }, node.op));
  }
  to.rename(values.back().name, output);

  const auto& [channels, height, width] = graph.input_shape();
  std::string message = to.fields();
  add_bytes(message, kGraphName, graph.name);
  add_bytes(message, kGraphInput, described(input, {channels, height, width}));
  add_bytes(message, kGraphOutput, described(output, {graph.classes()}));
  return message;
}

}  // namespace

void require_exportable(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Parameter& parameter : graph.parameters)
    bytes += parameter.elements() * static_cast<std::int64_t>(sizeof(float));
  if (bytes > kMostWeightBytes)
    base::fail(
        base::ErrorKind::data,
        "{}: its weights have {:.1f} GB, but an ONNX file must have less than 2 GiB, the most that readers "
        "of protobuf take; load the checkpoint in PyTorch, whose names it has, and export it from there "
        "with its weights in files beside the model",
        graph.name, static_cast<double>(bytes) / 1e9);
}

std::string export_model(const Graph& graph, const Layout& layout, std::span<const float> weights,
                         const ModelFacts& facts) {
  require_exportable(graph);
  base::expects(facts.mean.size() == facts.stddev.size(), "a deviation for each mean");
  const auto content = graph_message(graph, layout, weights, facts);
  std::string opset, model;
  add_whole_number(opset, kOpsetVersion, kOpset);
  add_whole_number(model, kModelFormat, kFormat);
  add_bytes(model, kModelProducer, "Paceline");
  add_bytes(model, kModelProducerVersion, facts.version);
  add_bytes(model, kModelText, facts.description);
  add_bytes(model, kModelOpset, opset);
  for (const auto& [key, value] : facts.metadata) {
    std::string entry;
    add_bytes(entry, kEntryKey, key);
    add_bytes(entry, kEntryValue, value);
    add_bytes(model, kModelMetadata, entry);
  }
  begin_bytes(model, kModelGraph, content.size());
  return model + content;
}

}  // namespace paceline::graph::onnx
