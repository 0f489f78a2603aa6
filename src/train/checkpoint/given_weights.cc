#include "train/checkpoint/given_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "base/dtype.h"
#include "base/error.h"
#include "base/text.h"
#include "graph/rates.h"
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

/// What stands before the model's names in all names of the file, "module."; empty: nothing, or the names
/// differ.
std::string prefix_of(const SafetensorsFile& file, const graph::Graph& graph) {
  const std::string& first = graph.parameters.front().name;
  if (file.find(first) != nullptr) return "";
  for (const Tensor& tensor : file.tensors()) {
    if (!tensor.name.ends_with("." + first)) continue;
    const std::string prefix = tensor.name.substr(0, tensor.name.size() - first.size());
    if (file.find(prefix + graph.parameters.back().name) != nullptr) return prefix;
  }
  return "";
}

/// The file's array of each parameter.
class Match {
 public:
  Match(const SafetensorsFile& file, const graph::Graph& graph, bool by_order)
      : file_(file), graph_(graph), by_order_(by_order), last_(graph::last_layer(graph)) {
    by_order ? match_in_order() : match_names();
    for (std::size_t i = 0; i < arrays_.size(); ++i) check(graph.parameters[i], arrays_[i]);
    describe();
  }

  GivenWeights given;
  /// Of a parameter; null: it is drawn anew.
  [[nodiscard]] const Tensor* of(std::size_t parameter) const { return arrays_[parameter]; }

 private:
  [[nodiscard]] std::string name() const { return file_.path().filename().string(); }

  void match_names() {
    const std::string prefix = prefix_of(file_, graph_);
    std::unordered_set<std::string_view> wanted;
    for (const graph::Parameter& parameter : graph_.parameters) {
      const Tensor* tensor = file_.find(prefix + parameter.name);
      if (tensor == nullptr) fail_without(parameter);
      wanted.insert(tensor->name);
      arrays_.push_back(tensor);
    }
    for (const Tensor& tensor : file_.tensors())
      if (!wanted.contains(tensor.name) && !is_beside_the_weights(tensor.name))
        given.left_out.push_back(tensor.name);
    if (!prefix.empty()) how_ = fmt::format(", whose names begin with '{}'", prefix);
  }

  void match_in_order() {
    for (const Tensor& tensor : file_.tensors())
      if (!is_beside_the_weights(tensor.name)) arrays_.push_back(&tensor);
    if (arrays_.size() != graph_.parameters.size())
      base::fail(ErrorKind::usage,
                 "{}: model '{}' has {}, but the file has {}; --weights-by order needs one for each", name(),
                 graph_.name, base::counted(std::ssize(graph_.parameters), "array"), arrays_.size());
    how_ = fmt::format(" in their order, {} for {} first", arrays_.front()->name,
                       graph_.parameters.front().name);
  }

  [[noreturn]] void fail_without(const graph::Parameter& parameter) const {
    std::vector<std::string> known;
    for (const Tensor& tensor : file_.tensors()) known.push_back(tensor.name);
    const auto weights =
        std::ranges::count_if(known, [](const auto& k) { return !is_beside_the_weights(k); });
    base::fail(
        ErrorKind::usage, "{}: model '{}' needs an array '{}' of shape {}, but the file has none{}", name(),
        graph_.name, parameter.name, shape_text(parameter.shape),
        base::nearest_name(parameter.name, known) ? base::suggestion(parameter.name, known)
        : weights == std::ssize(graph_.parameters)
            ? fmt::format("; it has as many arrays as the model, {} first: if only their names differ, "
                          "--weights-by order takes them one after the other",
                          known.front())
            : fmt::format("; it has {}, {} first: take the weights of this model",
                          base::counted(std::ssize(known), "array"), known.empty() ? "none" : known.front()));
  }

  /// Fails unless the parameter can take the array; null afterwards if it is drawn anew.
  void check(const graph::Parameter& parameter, const Tensor*& tensor) {
    if (!is_number(tensor->dtype))
      base::fail(ErrorKind::usage,
                 "{}: '{}' must have numbers of type F32, F16, BF16 or F64, but has whole "
                 "numbers; take the weights themselves, not quantised ones",
                 name(), tensor->name);
    if (tensor->shape == parameter.shape) return;
    if (parameter.node == last_ && differ_in_classes_alone(tensor->shape, parameter.shape)) {
      given.drawn.push_back(parameter.name);
      classes_of_file_ = tensor->shape.front();
      tensor = nullptr;
      return;
    }
    const bool is_transposed = std::vector(tensor->shape.rbegin(), tensor->shape.rend()) == parameter.shape;
    base::fail(ErrorKind::usage, "{}: '{}' must have the shape {} of {}, but has {}{}", name(), tensor->name,
               shape_text(parameter.shape),
               by_order_ ? fmt::format("'{}', the model's next", parameter.name)
                         : fmt::format("model '{}'", graph_.name),
               shape_text(tensor->shape),
               is_transposed ? ": it is transposed; save it in PyTorch's order [out, in]"
                             : "; take the weights of this model");
  }

  void describe() {
    given.sentence = fmt::format("weights from {}: {}{}", name(),
                                 base::counted(std::ssize(arrays_) - std::ssize(given.drawn), "array"), how_);
    if (!given.drawn.empty())
      given.sentence +=
          fmt::format("; {} drawn anew, because the file's last layer has {} classes and the data {}",
                      fmt::join(given.drawn, " and "), classes_of_file_, graph_.classes());
    if (!given.left_out.empty())
      given.sentence += fmt::format("; {} of the file that the model does not have {} left out, {} first",
                                    base::counted(std::ssize(given.left_out), "array"),
                                    given.left_out.size() == 1 ? "is" : "are", given.left_out.front());
  }

  const SafetensorsFile& file_;
  const graph::Graph& graph_;
  const bool by_order_;
  const int last_;
  std::vector<const Tensor*> arrays_;  ///< [parameters]
  std::string how_;
  std::int64_t classes_of_file_ = 0;
};

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

GivenWeights check_given_weights(const WeightsFile& from, const graph::Graph& graph) {
  const SafetensorsFile file = opened(from.path);
  return Match(file, graph, from.by_order).given;
}

GivenWeights read_given_weights(const WeightsFile& from, const graph::Graph& graph,
                                const graph::Layout& layout, std::span<float> weights) {
  const SafetensorsFile file = opened(from.path);
  const Match match(file, graph, from.by_order);
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    const graph::Parameter& parameter = graph.parameters[i];
    const Tensor* tensor = match.of(i);
    if (tensor == nullptr) continue;
    const auto& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[i])];
    for (std::int64_t element = 0; element < parameter.elements(); ++element) {
      const float value = value_at(*tensor, element);
      if (!std::isfinite(value))
        base::fail(ErrorKind::data,
                   "{}: '{}' must have finite numbers, but element {} is {}; take weights of a "
                   "training that did not diverge",
                   from.path.string(), tensor->name, element, value);
      weights[static_cast<std::size_t>(slot.offset + element)] = value;
    }
  }
  return match.given;
}

}  // namespace paceline::train
