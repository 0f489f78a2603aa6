#pragma once

/// A graph, computed plainly: every value kept, every op a loop, in float or in double. What the fast engines
/// are tested against, and what finite differences test in turn.
///
/// One thread; calls in the order of engine.h. Values are [batch][C][H][W].

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "engine/engine.h"
#include "engine/reference/ops/batch_norm.h"
#include "engine/reference/ops/op_shapes.h"

namespace paceline::engine::reference {

/// Bytes of all values (and, for training, their gradients) of a network of numbers of `bytes_per_element`.
[[nodiscard]] std::int64_t activation_bytes(const graph::Graph& graph, const CompileOptions& options,
                                            std::int64_t bytes_per_element);

template <typename T>
class Program {
 public:
  /// `graph` and `layout` must outlive the program.
  Program(const graph::Graph& graph, const graph::Layout& layout, const CompileOptions& options);

  LossSums forward(const StepInput& input, std::span<const T> weights);
  /// Overwrites `gradients` [layout.elements], padding included, for the last forward.
  void backward(std::span<const T> weights, std::span<T> gradients, const GradientReady& on_ready);
  LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count, int views,
                    std::span<const T> weights, std::span<double> logits = {});
  void observe(OpObserver observer) { observer_ = std::move(observer); }

  /// The last forward's or evaluate's loss, summed over samples without rounding.
  [[nodiscard]] double exact_loss() const { return exact_loss_; }
  /// A node's value, and the gradient that reached it in the last backward.
  [[nodiscard]] std::span<const T> value(int node) const {
    return values_[static_cast<std::size_t>(node)].template as<T>();
  }
  [[nodiscard]] std::span<const T> gradient(int node) const {
    return d_values_[static_cast<std::size_t>(node)].template as<T>();
  }

 private:
  /// What changes from pass to pass.
  struct PassState {
    bool training = false;
    int batch = 0;
    int views = 1;  ///< of each label
    std::span<const T> weights;
    std::span<T> gradients;
    std::vector<std::int32_t> labels;
    std::span<double> logits = {};  ///< [labels][classes]: for who asked for them; empty: nobody
    double gradient_scale = 1;
    std::uint64_t step = 0;
    std::int64_t first_position = 0;
  };

  LossSums run(std::span<const float> images);
  void load_images(std::span<const float> images);

  // Visitors of the ops, in program.cc.
  struct Forward;
  struct Backward;

  [[nodiscard]] OpShapes shapes(int node) const;
  [[nodiscard]] const T* src(int node, int input = 0) const;
  [[nodiscard]] T* dst(int node);
  [[nodiscard]] T* d_src(int node, int input = 0);  ///< null where no gradient is needed
  [[nodiscard]] const T* d_dst(int node) const;
  /// The op's i-th parameter in the flat arrays; null when it has fewer.
  [[nodiscard]] const T* weight(int node, std::size_t parameter) const;
  [[nodiscard]] T* d_weight(int node, std::size_t parameter);
  [[nodiscard]] const graph::Slot* slot(int node, std::size_t parameter) const;

  const graph::Graph& graph_;
  const graph::Layout& layout_;
  std::uint64_t seed_;
  int batch_;
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

}  // namespace paceline::engine::reference
