#include "train/checkpoint/given_weights.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "base/dtype.h"
#include "base/error.h"
#include "base/text.h"
#include "train/checkpoint/safetensors.h"

namespace paceline::train {
namespace {

using base::DType;
using base::ErrorKind;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

bool is_number(DType type) {
  return type == DType::f64 || type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

/// PyTorch counts batches beside each batch norm, and a checkpoint has the state of its training: nothing
/// that a reader of the sentence would miss.
bool is_beside_the_weights(const std::string& name) {
  return name.ends_with(".num_batches_tracked") || name.starts_with("optimizer.") ||
         name.starts_with("lookahead.");
}

/// Errors   also Error(usage) for a file of torch.save()
SafetensorsFile opened(const std::filesystem::path& path) {
  const std::string ending = base::lower_case(path.extension().string());
  if (ending == ".pth" || ending == ".pt" || ending == ".bin" || ending == ".ckpt")
    base::fail(ErrorKind::usage,
               "--weights {}: must be a safetensors file, but is named like one of torch.save(); "
               "'paceline_model.py MODULE:CALLABLE --state {}' converts it (docs/models.md)",
               path.string(), path.filename().string());
  return SafetensorsFile(path);
}

/// Whether the shapes are those of one layer with other numbers of classes.
bool differ_in_classes_alone(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  return a.size() == b.size() && !a.empty() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

/// The node whose weights make the logits, through ops without weights; -1 if there is none.
int last_layer(const graph::Graph& graph) {
  int node = graph.logits();
  while (graph.nodes[static_cast<std::size_t>(node)].parameters.empty()) {
    const auto& inputs = graph.nodes[static_cast<std::size_t>(node)].inputs;
    if (inputs.size() != 1) return -1;
    node = inputs.front();
  }
  return node;
}

/// The end of a sentence on a missing array.
std::string what_is_there(const std::string& missing, const std::vector<std::string>& known) {
  if (base::nearest_name(missing, known)) return base::suggestion(missing, known);
  return fmt::format("; it has {}, {} first: take the weights of this model",
                     base::counted(static_cast<std::int64_t>(known.size()), "array"),
                     known.empty() ? "none" : known.front());
}

/// Decides for each parameter; `file` is named in errors.
GivenWeights compare(const SafetensorsFile& file, const graph::Graph& graph) {
  GivenWeights given;
  const std::string name = file.path().filename().string();
  std::vector<std::string> known;
  for (const Tensor& tensor : file.tensors()) known.push_back(tensor.name);
  const int last = last_layer(graph);
  std::unordered_set<std::string> wanted;
  for (const graph::Parameter& parameter : graph.parameters) {
    wanted.insert(parameter.name);
    const Tensor* tensor = file.find(parameter.name);
    if (tensor == nullptr)
      base::fail(ErrorKind::usage, "{}: model '{}' needs an array '{}' of shape {}, but the file has none{}",
                 name, graph.name, parameter.name, shape_text(parameter.shape),
                 what_is_there(parameter.name, known));
    if (!is_number(tensor->dtype))
      base::fail(ErrorKind::usage,
                 "{}: '{}' must have numbers of type F32, F16, BF16 or F64, but has whole "
                 "numbers; take the weights themselves, not quantised ones",
                 name, parameter.name);
    if (tensor->shape == parameter.shape) continue;
    if (parameter.node == last && differ_in_classes_alone(tensor->shape, parameter.shape)) {
      given.drawn.push_back(parameter.name);
      continue;
    }
    const bool is_transposed = std::vector(tensor->shape.rbegin(), tensor->shape.rend()) == parameter.shape;
    base::fail(ErrorKind::usage, "{}: '{}' must have the shape {} of model '{}', but has {}{}", name,
               parameter.name, shape_text(parameter.shape), graph.name, shape_text(tensor->shape),
               is_transposed ? ": it is transposed; save it in PyTorch's order [out, in]"
                             : "; take the weights of this model");
  }
  for (const Tensor& tensor : file.tensors())
    if (!wanted.contains(tensor.name) && !is_beside_the_weights(tensor.name))
      given.left_out.push_back(tensor.name);

  given.sentence = fmt::format(
      "weights from {}: {}", name,
      base::counted(static_cast<std::int64_t>(graph.parameters.size() - given.drawn.size()), "array"));
  if (!given.drawn.empty())
    given.sentence += fmt::format(
        "; {} drawn anew, because the file's last layer has {} classes and the data {}",
        fmt::join(given.drawn, " and "), file.find(given.drawn.front())->shape.front(), graph.classes());
  if (!given.left_out.empty())
    given.sentence += fmt::format("; {} of the file that the model does not have {} left out, {} first",
                                  base::counted(static_cast<std::int64_t>(given.left_out.size()), "array"),
                                  given.left_out.size() == 1 ? "is" : "are", given.left_out.front());
  return given;
}

float value_at(const Tensor& tensor, std::int64_t index) {
  const auto read = [&]<typename T>(T value) {
    std::memcpy(&value, tensor.bytes.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
    return value;
  };
  switch (tensor.dtype) {
    case DType::f64:
      return static_cast<float>(read(double{}));
    case DType::f32:
      return read(float{});
    case DType::f16:
      return static_cast<float>(std::bit_cast<_Float16>(read(std::uint16_t{})));
    default:
      return base::to_float(base::BFloat16{read(std::uint16_t{})});
  }
}

}  // namespace

GivenWeights check_given_weights(const std::filesystem::path& path, const graph::Graph& graph) {
  return compare(opened(path), graph);
}

GivenWeights read_given_weights(const std::filesystem::path& path, const graph::Graph& graph,
                                const graph::Layout& layout, std::span<float> weights) {
  const SafetensorsFile file = opened(path);
  GivenWeights given = compare(file, graph);
  const std::unordered_set<std::string> drawn(given.drawn.begin(), given.drawn.end());
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const graph::Parameter& parameter = graph.parameters[i];
    if (drawn.contains(parameter.name)) continue;
    const Tensor& tensor = *file.find(parameter.name);
    const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
    for (std::int64_t element = 0; element < parameter.elements(); ++element) {
      const float value = value_at(tensor, element);
      if (!std::isfinite(value))
        base::fail(ErrorKind::data,
                   "{}: '{}' must have finite numbers, but element {} is {}; take weights of a "
                   "training that did not diverge",
                   path.string(), parameter.name, element, value);
      weights[static_cast<std::size_t>(slot.offset + element)] = value;
    }
  }
  return given;
}

}  // namespace paceline::train
