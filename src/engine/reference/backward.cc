// The backward pass of the reference engine's program.

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "engine/reference/conv.h"
#include "engine/reference/program.h"
#include "graph/ops.h"

namespace paceline::engine::reference {

/// Adds to d_src, since several ops may read one value.
template <typename T>
struct Program<T>::Backward {
  Program& program;
  int i;  ///< the node
  void operator()(const graph::Input&) const {}
  void operator()(const graph::Conv2d& op) const {
    if (program.learns_[static_cast<std::size_t>(i)])
      conv2d_backward_weight(program.shapes(i), op, program.src(i), program.d_dst(i), program.d_weight(i, 0),
                             program.d_weight(i, 1));
    if (T* d = program.d_src(i))
      conv2d_backward_data(program.shapes(i), op, program.d_dst(i), program.weight(i, 0), d);
  }
  void operator()(const graph::Dense& op) const {
    if (!op.flatten) return (*this)(op.at_each_place());
    if (program.learns_[static_cast<std::size_t>(i)])
      dense_backward_weight(program.shapes(i), program.src(i), program.d_dst(i), program.d_weight(i, 0),
                            program.d_weight(i, 1));
    if (T* d = program.d_src(i))
      dense_backward_data(program.shapes(i), program.d_dst(i), program.weight(i, 0), d);
  }
  void operator()(const graph::BatchNorm& op) const {
    if (!program.needs_gradient_[static_cast<std::size_t>(i)])
      return;  // frozen, and so is everything before it
    if (op.is_frozen) {
      frozen_batch_norm_backward(program.shapes(i), op, program.src(i), program.weight(i, 0),
                                 program.weight(i, 2), program.weight(i, 3), program.d_dst(i),
                                 program.d_src(i), program.d_weight(i, 0), program.d_weight(i, 1));
      return;
    }
    const BatchNormStatistics& statistics = program.statistics_[static_cast<std::size_t>(i)];
    batch_norm_backward(program.shapes(i), program.groups_, statistics, program.src(i), program.weight(i, 0),
                        program.d_dst(i), program.d_src(i), program.d_weight(i, 0), program.d_weight(i, 1));
    // Running statistics are sent in the gradient array, weighted like gradients, so that the sum over
    // workers is their average.
    const double share = program.pass_.batch * program.pass_.gradient_scale;
    std::transform(statistics.batch_mean.begin(), statistics.batch_mean.end(), program.d_weight(i, 2),
                   [&](double mean) { return static_cast<T>(mean * share); });
    std::transform(statistics.batch_variance.begin(), statistics.batch_variance.end(), program.d_weight(i, 3),
                   [&](double variance) { return static_cast<T>(variance * share); });
  }
#define PACELINE_BACKWARD(Op, name)                                                  \
  void operator()(const graph::Op& op) const {                                       \
    const T* kept = graph::rule_of(op).saved.dst ? program.dst(i) : program.src(i);  \
    if (T* d = program.d_src(i))                                                     \
      elementwise_backward<graph::Op>(program.shapes(i), kept, program.d_dst(i), d); \
  }
  PACELINE_ELEMENTWISE_OPS(PACELINE_BACKWARD)
#undef PACELINE_BACKWARD
  void operator()(const graph::MaxPool&) const {
    if (T* d = program.d_src(i))
      max_pool_backward(program.shapes(i),
                        program.winners_[static_cast<std::size_t>(i)].template as<std::int32_t>().data(),
                        program.d_dst(i), d);
  }
  void operator()(const graph::AveragePool& op) const {
    if (T* d = program.d_src(i)) average_pool_backward(program.shapes(i), op, program.d_dst(i), d);
  }
  void operator()(const graph::AdaptiveAveragePool& op) const {
    if (T* d = program.d_src(i)) average_pool_backward(program.shapes(i), op, program.d_dst(i), d);
  }
  void operator()(const graph::GlobalAveragePool&) const {
    if (T* d = program.d_src(i)) global_average_pool_backward(program.shapes(i), program.d_dst(i), d);
  }
  void operator()(const graph::Add&) const {
    for (int input = 0; input < 2; ++input)
      if (T* d = program.d_src(i, input)) add_backward(program.shapes(i), program.d_dst(i), d);
  }
  void operator()(const graph::Mul&) const {
    mul_backward(program.shapes(i), program.pixels_of_factor(i), program.src(i, 0), program.src(i, 1),
                 program.d_dst(i), program.d_src(i, 0), program.d_src(i, 1));
  }
  void operator()(const graph::Concat&) const { copy_back(); }
  void operator()(const graph::Slice&) const { copy_back(); }
  void operator()(const graph::ChannelShuffle&) const { copy_back(); }
  void copy_back() const {
    for (const ChannelCopy& one : channel_copies(program.graph_, i))
      if (T* d = program.d_src(i, one.input))
        copy_channels_backward(program.shapes(i, one.input), one, program.d_dst(i), d);
  }
  void operator()(const graph::Pad& op) const {
    if (T* d = program.d_src(i)) pad_backward(program.shapes(i), op, program.d_dst(i), d);
  }
  void operator()(const graph::StochasticDepth& op) const {
    T* const d = program.d_src(i);
    if (d == nullptr) return;
    program.drop_samples(i, op.probability, [&](int n, std::int64_t sample, T scale) {
      for (std::int64_t at = n * sample; at < (n + 1) * sample; ++at) d[at] += program.d_dst(i)[at] * scale;
    });
  }
  void operator()(const graph::LayerNorm& op) const { normalised(SampleGroups::of(op)); }
  void operator()(const graph::GroupNorm& op) const { normalised(SampleGroups::of(op)); }
  void normalised(const SampleGroups& groups) const {
    if (program.needs_gradient_[static_cast<std::size_t>(i)])
      group_norm_backward(program.shapes(i), groups, program.src(i), program.weight(i, 0), program.d_dst(i),
                          program.d_src(i), learned(0), learned(1));
  }
  void operator()(const graph::Scale&) const {
    if (program.needs_gradient_[static_cast<std::size_t>(i)])
      scale_backward(program.shapes(i), program.src(i), program.weight(i, 0), program.d_dst(i),
                     program.d_src(i), learned(0));
  }
  /// The gradient of a parameter; null if none of the op's learns.
  [[nodiscard]] T* learned(std::size_t parameter) const {
    return program.learns_[static_cast<std::size_t>(i)] ? program.d_weight(i, parameter) : nullptr;
  }
  void operator()(const graph::Dropout& op) const {
    if (T* d = program.d_src(i))
      dropout_backward(program.shapes(i), op, program.masks(i, op.probability), program.d_dst(i), d);
  }
  void operator()(const graph::Position&) const {
    if (program.learns_[static_cast<std::size_t>(i)])
      position_backward_weight(program.shapes(i), program.d_dst(i), program.d_weight(i, 0));
    if (T* d = program.d_src(i)) add_backward(program.shapes(i), program.d_dst(i), d);
  }
  void operator()(const graph::ClassToken&) const {
    class_token_backward(program.shapes(i), program.d_dst(i), program.d_src(i), learned(0));
  }
  void operator()(const graph::FirstPlace&) const {
    const OpShapes shapes = program.shapes(i);
    if (T* d = program.d_src(i)) pad_backward(shapes, graph::first_place_of(shapes.src), program.d_dst(i), d);
  }
  void operator()(const graph::Attention& op) const {
    if (T* d = program.d_src(i))
      attention_backward(program.shapes(i), op, program.src(i), program.d_dst(i), d);
  }
  void operator()(const graph::SoftmaxCrossEntropy& op) const {
    if (T* d = program.d_src(i))
      softmax_cross_entropy_backward(program.shapes(i), op, program.dst(i), program.pass_.labels,
                                     program.pass_.gradient_scale, d, program.pass_.second_labels);
  }
  template <typename Op>
  void operator()(const Op&) const {
    static_assert(sizeof(Op) == 0, "this op of graph::Attributes has no backward case here: add it");
  }
};

template <typename T>
void Program<T>::backward(std::span<const T> weights, std::span<T> gradients, const GradientReady& on_ready) {
  base::expects(pass_.training && !d_values_.empty(), "backward follows a training forward");
  pass_.weights = weights;
  pass_.gradients = gradients;
  std::fill(gradients.begin(), gradients.end(), T{0});
  for (auto& d_value : d_values_) d_value.fill_zero();

  std::int64_t ready = 0;
  for (int i = static_cast<int>(graph_.nodes.size()) - 1; i >= 0; --i) {
    const graph::Node& node = graph_.nodes[static_cast<std::size_t>(i)];
    if (observer_) observer_(i, Pass::backward, true);
    std::visit(Backward{*this, i}, node.op);
    if (observer_) observer_(i, Pass::backward, false);
    if (node.parameters.empty()) continue;
    // The node's slots are the next ones in backward order; what follows its last begins where they end.
    const auto last =
        static_cast<std::size_t>(layout_.slot_of_parameter[static_cast<std::size_t>(node.parameters.back())]);
    ready = last + 1 < layout_.slots.size() ? layout_.slots[last + 1].offset : layout_.elements;
    if (on_ready) on_ready(ready);
  }
}

template void Program<float>::backward(std::span<const float>, std::span<float>, const GradientReady&);
template void Program<double>::backward(std::span<const double>, std::span<double>, const GradientReady&);

}  // namespace paceline::engine::reference
