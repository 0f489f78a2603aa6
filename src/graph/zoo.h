#pragma once

/// Makes models by name or from TOML files of layers.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace paceline::graph {

struct OpSite;  // graph/ops.h

/// Full names of an op's weight and bias, where PyTorch's do not end in ".weight" and ".bias"
/// ("encoder.pos_embedding"). Empty: "<node>.weight", "<node>.bias".
struct ParameterNames {
  std::string weight = {}, bias = {};
};

// Builds a Graph op by op, and checks each op when it is added.
//
// Every op function returns the index of its node, which later ops take as input. The caller names ops with
// parameters (PyTorch's module path); other ops get a readable name ("relu3") unless one is given.
//
// Errors   Error(usage) with the op's name, the rule, the actual shapes and what to do
// Threads  one builder, one thread; the finished Graph is constant

class Builder {
 public:
  explicit Builder(std::string model_name) { graph_.name = std::move(model_name); }

  int input(Shape shape) { return append(Input{shape}, {}, "input"); }
  int conv2d(int src, std::string name, const Conv2d& attributes) {
    return append(attributes, {src}, std::move(name));
  }
  int dense(int src, std::string name, const Dense& attributes) {
    return append(attributes, {src}, std::move(name));
  }
  int batch_norm(int src, std::string name, const BatchNorm& attributes = {}) {
    return append(attributes, {src}, std::move(name));
  }
#define PACELINE_SHORT_FORM(Op, function) \
  int function(int src, std::string name = "") { return append(Op{}, {src}, std::move(name)); }
  PACELINE_ELEMENTWISE_OPS(PACELINE_SHORT_FORM)
#undef PACELINE_SHORT_FORM
  int max_pool(int src, const MaxPool& attributes, std::string name = "") {
    return append(attributes, {src}, std::move(name));
  }
  int global_average_pool(int src, std::string name = "") {
    return append(GlobalAveragePool{}, {src}, std::move(name));
  }
  int add(int left, int right, std::string name = "") {
    return append(Add{}, {left, right}, std::move(name));
  }
  int dropout(int src, const Dropout& attributes, std::string name = "") {
    return append(attributes, {src}, std::move(name));
  }
  int loss(int logits, double label_smoothing, std::string name = "loss") {
    return append(SoftmaxCrossEntropy{label_smoothing}, {logits}, std::move(name));
  }

  /// Adds any op; the functions above are short forms of it for the models in code.
  int append(Attributes op, std::vector<int> inputs, std::string name = "",
             const ParameterNames& parameters = {});

  [[nodiscard]] const Shape& shape_of(int node) const;

  /// Returns the finished graph. The builder must not be used afterwards.
  ///
  /// Errors   Error(usage) when the last op is not a loss, or no op uses a node's output
  [[nodiscard]] Graph finish();

 private:
  [[nodiscard]] std::string unique_name(const std::string& kind);
  void require_usable_name(std::string_view kind, const std::string& name) const;
  static void require_free_prefix(std::string_view kind, const std::string& name);
  [[nodiscard]] std::string parameter_name(const OpSite& site, std::string_view suffix,
                                           const std::string& given);
  void require_possible_size(const Node& node);
  void add_parameters(Node& node, const OpSite& site, const ParameterNames& names);
  Graph graph_;
  std::unordered_set<std::string> names_;              ///< of all nodes
  std::unordered_set<std::string> parameter_names_;    ///< of all parameters
  std::unordered_map<std::string, int> last_numbers_;  ///< by kind: all numbers up to it are taken
  double elements_ = 0;                                ///< of all parameters
};

/// The model that a model file describes, for images of shape `input` in `classes` classes. `source` is the
/// file's name in errors.
///
/// Errors   Error(usage) "<source>:<line>: ..." for a fault in the file, with the nearest known name for a
///          wrong name
[[nodiscard]] Graph parse_model(std::string_view toml, const std::string& source, Shape input, int classes,
                                double label_smoothing);

/// The images with which a model file says that it was recorded or published.
///
/// Errors   as parse_model
[[nodiscard]] std::optional<Shape> recorded_input(std::string_view toml, const std::string& source);

/// A model file inside the program: those of recipes/models/.
struct ModelText {
  std::string_view name;
  std::string_view text;
};
[[nodiscard]] std::span<const ModelText> zoo_files();

/// "mnist-cnn", "resnet18", "resnet18-cifar", "resnet8-cifar": they take images of any size from 17 pixels
/// on.
[[nodiscard]] std::vector<std::string> models_in_code();

/// Those, then the names of zoo_files().
[[nodiscard]] std::vector<std::string> model_names();

/// recorded_input() of a file or a name of the zoo; nothing for models_in_code() and files that do not say.
[[nodiscard]] std::optional<Shape> recorded_input_of(const std::string& name_or_file);

/// That, or by the name: 1x28x28 if it begins with "mnist", 3x32x32 with "cifar" in it, else 3x224x224.
[[nodiscard]] Shape usual_input(const std::string& name_or_file);

/// The model for images of shape `input` in `classes` classes. A name ending in ".toml" is a model file
/// (docs/models.md).
///
/// Parameter names are torchvision's. Trainable elements (3 channels, mnist-cnn 1; 10 classes):
/// resnet18-cifar 11,173,962 · resnet18 11,181,642 (1,000 classes: 11,689,512) · mnist-cnn at 28x28 1,199,882
/// · resnet8-cifar 78,042.
///
/// Errors   Error(usage) for an unknown name (with the nearest one) or an input too small for the model; as
///          parse_model(); Error(data) when a file cannot be read
[[nodiscard]] Graph make_model(const std::string& name_or_file, Shape input, int classes,
                               double label_smoothing);

/// Sets the weight of each class in the loss of a training.
///
/// Requires  a weight above 0 for each class
void set_class_weights(Graph& graph, std::vector<double> weights);

}  // namespace paceline::graph
