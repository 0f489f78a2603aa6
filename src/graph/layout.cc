#include "graph/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "graph/ops.h"
#include "graph/zoo.h"

namespace paceline::graph {
namespace {

constexpr std::int64_t kMultiple = 16;  // floats in a cache line and in a 512-bit vector

/// Takes what stands before `end` away from `text`, with `end`; without one all of it.
std::string_view cut_off(std::string_view& text, std::string_view end) {
  const auto at = text.find(end);
  const auto part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
  return part;
}

std::vector<int> numbers_from(std::string_view text, std::int64_t least, std::int64_t most) {
  std::vector<int> numbers;
  for (const auto& part : base::parts(text))
    numbers.push_back(static_cast<int>(base::whole_number(part, least, most)));
  return numbers;
}

Shape shape_from(std::string_view text) {
  constexpr std::int64_t kMost = 1 << 30;
  std::vector<int> sides;
  if (text.starts_with('[') && text.ends_with(']'))
    sides = numbers_from(text.substr(1, text.size() - 2), 1, kMost);
  if (sides.size() != 3) base::fail(base::ErrorKind::usage, "'{}' is no shape", text);
  return {sides[0], sides[1], sides[2]};
}

/// A line of canonical_text(), "conv2d of 0: channels 8, kernel 3; [8,32,32]; conv1.weight", as a layer of a
/// model file. `names` are those of the nodes before it; its own is added.
std::string layer_from(std::string_view line, std::vector<std::string>& names) {
  const auto in_quotes = [](std::string_view text) {
    std::string quoted(1, '"');
    for (const char letter : text) {
      if (letter == '"' || letter == '\\') quoted += '\\';
      quoted += letter;
    }
    return quoted += '"';
  };
  std::string layer = fmt::format("[[layer]]\nop = {}\ninputs = [", in_quotes(cut_off(line, " of ")));
  for (const int input : numbers_from(cut_off(line, ": "), 0, static_cast<std::int64_t>(names.size()) - 1))
    layer += fmt::format("{}, ", in_quotes(names[static_cast<std::size_t>(input)]));
  layer += "]\n";
  std::map<std::string_view, std::string_view> values;  // of a key the last: a bias is true, and has a name
  for (auto attributes = cut_off(line, "; "); !attributes.empty();) {
    const auto key = cut_off(attributes, " ");
    values[key] = cut_off(attributes, ", ");
  }
  for (const auto& [key, value] : values) layer += fmt::format("{} = {}\n", key, value);
  (void)cut_off(line, "; ");  // its shape follows from the others
  // "layer1.0.conv1.weight" is the node's name and a suffix, unless the parameter has a name of its own.
  const auto is_given = [&](std::string_view name) {
    return std::ranges::any_of(values, [&](const auto& pair) { return pair.second == in_quotes(name); });
  };
  std::string_view parameter = cut_off(line, "; ");
  while (!parameter.empty() && is_given(parameter)) parameter = cut_off(line, "; ");
  names.push_back(parameter.empty() ? fmt::format("without parameters {}", names.size())
                                    : std::string(parameter.substr(0, parameter.rfind('.'))));
  return layer + fmt::format("name = {}\n", in_quotes(names.back()));
}

/// `input`: instead of the image's shape in the text.
Graph graph_of_lines(const std::string& text, const std::string& model, const std::optional<Shape>& input) {
  std::vector<std::string_view> lines;
  for (std::string_view rest = text; !rest.empty();) lines.push_back(cut_off(rest, "\n"));
  if (lines.size() < 3) base::fail(base::ErrorKind::usage, "it has {} lines", lines.size());
  const auto shape_of = [](std::string_view line) {
    (void)cut_off(line, "; ");
    return shape_from(cut_off(line, "; "));
  };
  std::vector<std::string> names{"input"};
  std::string layers;
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) layers += layer_from(lines[i], names);
  const Shape image = shape_of(lines.front());
  Graph graph =
      parse_model(layers, model, input.value_or(image), shape_of(lines[lines.size() - 2]).channels, 0);
  graph.name = model;
  return graph;
}

/// `weight "NAME"`, as in a model file, of a parameter that is not called after its node.
std::string given_name(const Node& node, const Parameter& parameter, std::string_view before) {
  const bool is_weight = parameter.role == Role::weight || parameter.role == Role::norm_weight;
  const bool is_bias = parameter.role == Role::bias || parameter.role == Role::norm_bias;
  const std::string_view suffix = is_weight ? "weight" : "bias";
  if ((!is_weight && !is_bias) || parameter.name == fmt::format("{}.{}", node.name, suffix)) return "";
  return fmt::format("{}{} \"{}\"", before, suffix, parameter.name);
}

}  // namespace

std::string canonical_text(const Graph& graph) {
  std::string lines;
  for (const Node& node : graph.nodes) {
    std::string attributes = attributes_text(node.op);
    for (const int parameter : node.parameters)
      attributes += given_name(node, graph.parameters[static_cast<std::size_t>(parameter)],
                               attributes.empty() ? "" : ", ");
    lines += fmt::format("{} of {}: {}; {}", rule_of(node.op).kind, fmt::join(node.inputs, ","), attributes,
                         text(node.shape));
    for (const int parameter : node.parameters)
      lines += "; " + graph.parameters[static_cast<std::size_t>(parameter)].name;
    lines += '\n';
  }
  return lines;
}

std::string fingerprint(const Graph& graph) { return base::sha256_of_text(canonical_text(graph)); }

Graph graph_from_text(const std::string& text, const std::string& model, const std::string& source) {
  try {
    Graph graph = graph_of_lines(text, model, std::nullopt);
    if (canonical_text(graph) != text) base::fail(base::ErrorKind::usage, "read, it gives another text");
    return graph;
  } catch (const base::Error& error) {
    base::fail(
        base::ErrorKind::data,
        "{}: its graph cannot be read: {}; it is damaged, or a later version wrote it: take that version",
        source, error.what());
  }
}

std::optional<Graph> for_input(const Graph& graph, const Shape& input) {
  Graph other = graph_of_lines(canonical_text(graph), graph.name, input);
  const auto is_same = [](const Parameter& a, const Parameter& b) {
    return a.name == b.name && a.shape == b.shape;
  };
  if (!std::ranges::equal(graph.parameters, other.parameters, is_same)) return std::nullopt;
  other.nodes.back().op = graph.nodes.back().op;  // the loss, whose label smoothing is not in the text
  return other;
}

Layout flat_layout(const Graph& graph) {
  Layout layout;
  layout.slot_of_parameter.assign(graph.parameters.size(), -1);
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    for (const int parameter : node->parameters) {
      const std::int64_t elements = graph.parameters[static_cast<std::size_t>(parameter)].elements();
      layout.slot_of_parameter[static_cast<std::size_t>(parameter)] = static_cast<int>(layout.slots.size());
      layout.slots.push_back({.parameter = parameter, .offset = layout.elements, .elements = elements});
      layout.elements += (elements + kMultiple - 1) / kMultiple * kMultiple;
    }
  }
  return layout;
}

const Slot* slot_of(const Graph& graph, const Layout& layout, int node, std::size_t index) {
  const auto& parameters = graph.nodes[static_cast<std::size_t>(node)].parameters;
  if (index >= parameters.size()) return nullptr;
  const int slot = layout.slot_of_parameter[static_cast<std::size_t>(parameters[index])];
  return &layout.slots[static_cast<std::size_t>(slot)];
}

}  // namespace paceline::graph
