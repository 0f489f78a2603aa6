#pragma once

/// Writes an ONNX graph: nodes, and constant arrays. Of ONNX's messages only what exported models have
/// (onnx.proto of ONNX 1.12).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

namespace paceline::graph::onnx {

/// In this version of ONNX's ops every op of ours can be written, and it is the first whose files keep
/// constants apart from inputs. Later versions of the same ops take as inputs what are attributes here
/// (bounds of Clip, widths of Pad), so all write_op() are written for this one. Runtimes read it: ONNX
/// promises that old versions stay.
inline constexpr std::int64_t kOpset = 9;

using Numbers = std::vector<std::int64_t>;

/// A number, or several whole numbers, beside the inputs of a node.
struct Attribute {
  std::string_view name;
  std::variant<std::int64_t, float, Numbers> value;
};

/// Names of values are unique in a graph: that of a node's output is the wanted one, or has a number behind
/// it.
class GraphWriter {
 public:
  /// Takes a name, as for an input of the graph, or for an output, to which a value is renamed at the end.
  std::string reserve(std::string_view wanted_name);
  /// Adds a node of one output; returns the output's name.
  std::string node(std::string_view op, std::vector<std::string> inputs, std::string_view wanted_name,
                   std::vector<Attribute> attributes = {});
  /// Adds an array; returns its name. An empty shape is a single number.
  ///
  /// Requires  values.size() is the product of `shape`
  std::string constant(std::string_view wanted_name, const Numbers& shape, std::span<const float> values);
  /// Adds a list of whole numbers, as nodes take shapes.
  std::string constant(std::string_view wanted_name, const Numbers& values);
  /// Whether the value is the output of a node of this op.
  [[nodiscard]] bool is_made_by(std::string_view value, std::string_view op) const;
  /// Renames the output of a node, wherever it stands, to a reserved name.
  void rename(const std::string& value, const std::string& name);

  /// The fields of a GraphProto that hold nodes and constants.
  [[nodiscard]] std::string fields() const;

 private:
  struct Call {
    std::string op;
    std::vector<std::string> inputs;
    std::string output;
    std::vector<Attribute> attributes;
  };
  std::string tensor(std::string_view wanted_name, int type, const Numbers& shape,
                     std::span<const std::byte> bytes);

  std::unordered_set<std::string> names_;
  std::vector<Call> calls_;
  std::string constants_;  ///< fields of a GraphProto
};

}  // namespace paceline::graph::onnx
