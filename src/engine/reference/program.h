#pragma once

/// Computes a graph with plain loops, in float or double, and keeps every value. The fast engines are tested
/// against it; finite differences test it in turn. Values are [batch][C][H][W].
///
/// Threads  one; calls in the order that engine.h demands

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "engine/engine.h"
#include "engine/reference/ops.h"

namespace paceline::engine::reference {

/// Bytes of all values in float, and for training of their gradients.
[[nodiscard]] std::int64_t activation_bytes(const graph::Graph& graph, const CompileOptions& options);

template <typename T>
class Program {
 public:
  /// `graph` and `layout` must outlive the program.
  Program(const graph::Graph& graph, const graph::Layout& layout, const CompileOptions& options);

  LossSums forward(const StepInput& input, std::span<const T> weights);
  /// The gradients of the last forward. Overwrites `gradients` [layout.elements], padding included.
  void backward(std::span<const T> weights, std::span<T> gradients, const GradientReady& on_ready);
  LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count, int views,
                    std::span<const T> weights, std::span<double> logits = {});
  void observe(OpObserver observer) { observer_ = std::move(observer); }

  /// The loss of the last forward() or evaluate(), summed over samples without rounding.
  [[nodiscard]] double exact_loss() const { return exact_loss_; }
  /// The value of a node.
  [[nodiscard]] std::span<const T> value(int node) const {
    return values_[static_cast<std::size_t>(node)].template as<T>();
  }

 private:
  /// What changes from pass to pass.
  struct PassState {
    bool training = false;
    int batch = 0;
    int views = 1;  ///< images for each label
    std::span<const T> weights;
    std::span<T> gradients;
    std::vector<std::int32_t> labels;
    std::vector<base::SecondLabel> second_labels = {};
    std::span<double> logits = {};  ///< output [labels][classes]; empty: not wanted
    double gradient_scale = 1;
    std::uint64_t step = 0;
    std::int64_t first_position = 0;
  };

  LossSums run(std::span<const float> images);
  void load_images(std::span<const float> images);

  // Visitors of the ops; defined in program.cc and backward.cc.
  struct Forward;
  struct Backward;

  [[nodiscard]] OpShapes shapes(int node, int input = 0) const;
  /// How many adjacent elements of a product's first input one of the second multiplies.
  [[nodiscard]] std::int64_t pixels_of_factor(int node) const;
  /// The DropoutMask of sample n of the batch, for an op that drops.
  [[nodiscard]] auto masks(int node, double probability) const {
    return [this, node, probability](int n) {
      return DropoutMask(seed_, pass_.step, pass_.first_position + n, node, probability);
    };
  }
  /// Stochastic depth: calls visit(sample, elements of a sample, its factor), which is 0 for dropped ones.
  template <typename Visit>
  void drop_samples(int node, double probability, Visit visit) const;
  [[nodiscard]] const T* src(int node, int input = 0) const;
  [[nodiscard]] T* dst(int node) { return values_[static_cast<std::size_t>(node)].template as<T>().data(); }
  [[nodiscard]] T* d_src(int node, int input = 0);  ///< null if no gradient is needed
  [[nodiscard]] const T* d_dst(int node) const {
    return d_values_[static_cast<std::size_t>(node)].template as<T>().data();
  }
  /// Parameter number `parameter` of the op, in the flat arrays; null if it has fewer.
  [[nodiscard]] const T* weight(int node, std::size_t parameter) const;
  [[nodiscard]] T* d_weight(int node, std::size_t parameter);

  const graph::Graph& graph_;
  const graph::Layout& layout_;
  std::uint64_t seed_;
  int batch_;
  bool has_two_labels_;
  BatchNormGroups groups_;
  std::vector<bool> needs_gradient_;
  std::vector<bool> learns_;                     // [node]
  std::vector<base::Buffer> values_;             // [node]
  std::vector<base::Buffer> d_values_;           // [node]; empty for evaluation only
  std::vector<base::Buffer> winners_;            // [node]; of max pools
  std::vector<BatchNormStatistics> statistics_;  // [node]; of batch norms
  PassState pass_;
  LossSums sums_;
  double exact_loss_ = 0;
  OpObserver observer_;
};

template <typename T>
template <typename Visit>
void Program<T>::drop_samples(int node, double probability, Visit visit) const {
  for (int n = 0; n < pass_.batch; ++n) {
    const bool is_kept = !pass_.training || masks(node, probability)(n).keeps_sample();
    visit(n, shapes(node).dst.elements(),
          !is_kept         ? T{0}
          : pass_.training ? static_cast<T>(1 / (1 - probability))
                           : T{1});
  }
}

}  // namespace paceline::engine::reference
