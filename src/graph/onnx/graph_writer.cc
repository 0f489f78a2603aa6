#include "graph/onnx/graph_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/protobuf.h"

namespace paceline::graph::onnx {
namespace {

using base::protobuf::add_bytes;
using base::protobuf::add_float;
using base::protobuf::add_whole_number;
using base::protobuf::begin_bytes;

static_assert(std::endian::native == std::endian::little,
              "arrays of ONNX are little-endian; so must this machine be");

// Field numbers of ONNX's messages, and its numbers for types.
constexpr std::uint64_t kGraphNode = 1, kGraphInitializer = 5;
constexpr std::uint64_t kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeOp = 4, kNodeAttribute = 5;
constexpr std::uint64_t kAttributeName = 1, kAttributeFloat = 2, kAttributeWhole = 3, kAttributeWholes = 8,
                        kAttributeType = 20;
constexpr std::uint64_t kTensorShape = 1, kTensorType = 2, kTensorName = 8, kTensorBytes = 9;
constexpr int kOfFloats = 1, kOfWholeNumbers = 7;

std::string attribute_message(const Attribute& attribute) {
  enum Type { kFloat = 1, kWhole = 2, kWholes = 7 };
  std::string message;
  add_bytes(message, kAttributeName, attribute.name);
  if (const auto* whole = std::get_if<std::int64_t>(&attribute.value)) {
    add_whole_number(message, kAttributeWhole, *whole);
    add_whole_number(message, kAttributeType, kWhole);
  } else if (const auto* number = std::get_if<float>(&attribute.value)) {
    add_float(message, kAttributeFloat, *number);
    add_whole_number(message, kAttributeType, kFloat);
  } else {
    for (const auto each : std::get<Numbers>(attribute.value))
      add_whole_number(message, kAttributeWholes, each);
    add_whole_number(message, kAttributeType, kWholes);
  }
  return message;
}

}  // namespace

std::string GraphWriter::reserve(std::string_view wanted_name) {
  std::string name(wanted_name);
  for (int number = 2; !names_.insert(name).second; ++number)
    name = fmt::format("{}_{}", wanted_name, number);
  return name;
}

std::string GraphWriter::node(std::string_view op, std::vector<std::string> inputs,
                              std::string_view wanted_name, std::vector<Attribute> attributes) {
  calls_.push_back({std::string(op), std::move(inputs), reserve(wanted_name), std::move(attributes)});
  return calls_.back().output;
}

std::string GraphWriter::tensor(std::string_view wanted_name, int type, const Numbers& shape,
                                std::span<const std::byte> bytes) {
  auto name = reserve(wanted_name);
  std::string head;
  for (const auto length : shape) add_whole_number(head, kTensorShape, length);
  add_whole_number(head, kTensorType, type);
  add_bytes(head, kTensorName, name);
  begin_bytes(head, kTensorBytes, bytes.size());
  begin_bytes(constants_, kGraphInitializer, head.size() + bytes.size());
  constants_ += head;
  constants_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return name;
}

std::string GraphWriter::constant(std::string_view wanted_name, const Numbers& shape,
                                  std::span<const float> values) {
  std::int64_t elements = 1;
  for (const auto length : shape) elements *= length;
  base::expects(elements == static_cast<std::int64_t>(values.size()), "the shape has as many elements");
  return tensor(wanted_name, kOfFloats, shape, std::as_bytes(values));
}

std::string GraphWriter::constant(std::string_view wanted_name, const Numbers& values) {
  return tensor(wanted_name, kOfWholeNumbers, {static_cast<std::int64_t>(values.size())},
                std::as_bytes(std::span(values)));
}

bool GraphWriter::is_made_by(std::string_view value, std::string_view op) const {
  return std::ranges::any_of(calls_, [&](const Call& call) { return call.output == value && call.op == op; });
}

void GraphWriter::rename(const std::string& value, const std::string& name) {
  for (Call& call : calls_) {
    if (call.output == value) call.output = name;
    std::ranges::replace(call.inputs, value, name);
  }
}

std::string GraphWriter::fields() const {
  std::string graph;
  for (const Call& call : calls_) {
    std::string message;
    for (const auto& input : call.inputs) add_bytes(message, kNodeInput, input);
    add_bytes(message, kNodeOutput, call.output);
    add_bytes(message, kNodeName, call.output);
    add_bytes(message, kNodeOp, call.op);
    for (const auto& attribute : call.attributes)
      add_bytes(message, kNodeAttribute, attribute_message(attribute));
    add_bytes(graph, kGraphNode, message);
  }
  return graph + constants_;
}

}  // namespace paceline::graph::onnx
