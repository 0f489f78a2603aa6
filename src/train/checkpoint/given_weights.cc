#include "train/checkpoint/given_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/dtype.h"
#include "base/error.h"
#include "base/text.h"
#include "graph/rates.h"
#include "train/checkpoint/safetensors.h"
#include "train/checkpoint/torch_file.h"

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
         name.starts_with("lookahead.") || name.starts_with("ema.");
}

/// A file of either format.
class WeightsReader {
 public:
  explicit WeightsReader(const std::filesystem::path& path) {
    if (is_torch_file(path))
      torch_.emplace(path);
    else
      safetensors_.emplace(path);
  }
  [[nodiscard]] const std::vector<Tensor>& tensors() const {
    return torch_ ? torch_->tensors() : safetensors_->tensors();
  }
  /// Call before the bytes of `wanted` are read.
  void load(std::span<const Tensor* const> wanted) {
    if (torch_) torch_->load(wanted);
  }

 private:
  std::optional<SafetensorsFile> safetensors_;
  std::optional<TorchFile> torch_;
};

/// Whether the shapes are those of one layer with other numbers of classes.
bool differ_in_classes_alone(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  return a.size() == b.size() && !a.empty() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

/// The file's array of each parameter.
class Match {
 public:
  Match(const WeightsFile& file, std::span<const Tensor> tensors, const graph::Graph& graph)
      : file_(file), tensors_(tensors), graph_(graph), last_(graph::last_layer(graph)) {
    for (const Tensor& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
    file.by_order ? match_in_order() : match_names();
    for (std::size_t i = 0; i < arrays_.size(); ++i) check(graph.parameters[i], arrays_[i]);
    describe();
  }

  GivenWeights given;
  /// Of a parameter; null: it is drawn anew.
  [[nodiscard]] const Tensor* of(std::size_t parameter) const { return arrays_[parameter]; }

 private:
  [[nodiscard]] std::string name() const { return file_.path.filename().string(); }

  [[nodiscard]] const Tensor* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  /// What stands before the model's names in all names of the file, "module."; empty: nothing, or the names
  /// differ.
  [[nodiscard]] std::string prefix() const {
    const std::string& first = graph_.parameters.front().name;
    if (find(first) != nullptr) return "";
    for (const Tensor& tensor : tensors_) {
      if (!tensor.name.ends_with("." + first)) continue;
      const std::string prefix = tensor.name.substr(0, tensor.name.size() - first.size());
      if (find(prefix + graph_.parameters.back().name) != nullptr) return prefix;
    }
    return "";
  }

  void match_names() {
    const std::string prefix = this->prefix();
    std::unordered_set<std::string_view> wanted;
    for (const graph::Parameter& parameter : graph_.parameters) {
      const Tensor* tensor = find(prefix + parameter.name);
      if (tensor == nullptr) fail_without(parameter);
      wanted.insert(tensor->name);
      arrays_.push_back(tensor);
    }
    for (const Tensor& tensor : tensors_)
      if (!wanted.contains(tensor.name) && !is_beside_the_weights(tensor.name))
        given.left_out.push_back(tensor.name);
    if (!prefix.empty()) how_ = fmt::format(", whose names begin with '{}'", prefix);
  }

  void match_in_order() {
    for (const Tensor& tensor : tensors_)
      if (!is_beside_the_weights(tensor.name)) arrays_.push_back(&tensor);
    if (arrays_.size() != graph_.parameters.size())
      base::fail(ErrorKind::usage,
                 "{}: model '{}' has {}, but the file has {}; --weights-by order needs one for each", name(),
                 graph_.name, base::counted(std::ssize(graph_.parameters), "array"), arrays_.size());
    how_ = fmt::format(" in their order, {} for {} first", arrays_.front()->name,
                       graph_.parameters.front().name);
  }

  [[noreturn]] void fail_without(const graph::Parameter& parameter) const {
    const auto known = base::texts_of(tensors_, &Tensor::name);
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
      outputs_of_file_ = tensor->shape.front();
      tensor = nullptr;
      return;
    }
    const bool is_transposed = std::vector(tensor->shape.rbegin(), tensor->shape.rend()) == parameter.shape;
    base::fail(ErrorKind::usage, "{}: '{}' must have the shape {} of {}, but has {}{}", name(), tensor->name,
               shape_text(parameter.shape),
               file_.by_order ? fmt::format("'{}', the model's next", parameter.name)
                              : fmt::format("model '{}'", graph_.name),
               shape_text(tensor->shape),
               is_transposed ? ": it is transposed; save it in PyTorch's order [out, in]"
                             : "; take the weights of this model");
  }

  void describe() {
    given.sentence = fmt::format("weights from {}: {}{}", name(),
                                 base::counted(std::ssize(arrays_) - std::ssize(given.drawn), "array"), how_);
    if (!given.drawn.empty())
      given.sentence += fmt::format("; {} drawn anew, because the file has {} outputs there and the data {}",
                                    fmt::join(given.drawn, " and "), outputs_of_file_,
                                    base::counted(graph_.classes(), "class", "classes"));
    if (!given.left_out.empty())
      given.sentence += fmt::format("; {} of the file that the model does not have {} left out, {} first",
                                    base::counted(std::ssize(given.left_out), "array"),
                                    given.left_out.size() == 1 ? "is" : "are", given.left_out.front());
  }

  const WeightsFile& file_;
  const std::span<const Tensor> tensors_;
  const graph::Graph& graph_;
  const int last_;
  std::unordered_map<std::string_view, const Tensor*> by_name_;
  std::vector<const Tensor*> arrays_;  ///< [parameters]
  std::string how_;
  std::int64_t outputs_of_file_ = 0;
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
  const WeightsReader file(from.path);
  return Match(from, file.tensors(), graph).given;
}

GivenWeights read_given_weights(const WeightsFile& from, const graph::Graph& graph,
                                const graph::Layout& layout, std::span<float> weights) {
  WeightsReader file(from.path);
  const Match match(from, file.tensors(), graph);
  std::vector<const Tensor*> wanted;
  for (std::size_t i = 0; i < graph.parameters.size(); ++i)
    if (match.of(i) != nullptr) wanted.push_back(match.of(i));
  file.load(wanted);
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
