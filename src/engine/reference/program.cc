#include "engine/reference/program.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "engine/reference/conv.h"
#include "graph/ops.h"

namespace paceline::engine::reference {

using base::expects;

namespace {

BatchNormGroups groups_of(const CompileOptions& options) {
  switch (options.batch_norm) {
    case BatchNormMode::local:
      return {};
    case BatchNormMode::ghost:
      return {.groups = options.batch / options.ghost_size, .world_size = 1, .reduce = {}};
    case BatchNormMode::synchronised:
      if (options.shard > 0)
        base::fail(base::ErrorKind::usage,
                   "engine reference: it does not join shards of {} samples, which --shard with --bn sync "
                   "needs; use --bn local, or --device cpu",
                   options.shard);
      return {.groups = 1, .world_size = options.world_size, .reduce = options.reduce_statistics};
  }
  return {};
}

/// Elements kept for the backward pass: the loss keeps its probabilities, every other node its output.
std::int64_t kept_elements(const graph::Graph& graph, std::size_t node) {
  return node + 1 == graph.nodes.size() ? graph.classes() : graph.nodes[node].shape.elements();
}

/// [samples.batch * views][classes] to [samples.batch][classes].
template <typename T>
std::vector<T> mean_logits(const OpShapes& samples, int views, const T* logits) {
  const int classes = samples.src.channels;
  std::vector<T> means;
  for (int n = 0; n < samples.batch; ++n)
    for (int k = 0; k < classes; ++k) {
      double sum = 0;
      for (int view = 0; view < views; ++view)
        sum += static_cast<double>(logits[(std::int64_t{1} * n * views + view) * classes + k]);
      means.push_back(static_cast<T>(sum / views));
    }
  return means;
}

}  // namespace

std::int64_t activation_bytes(const graph::Graph& graph, const CompileOptions& options) {
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    elements += kept_elements(graph, i);
    if (options.training && i + 1 < graph.nodes.size()) elements += graph.nodes[i].shape.elements();
    if (graph.nodes[i].as<graph::MaxPool>()) elements += graph.nodes[i].shape.elements();  // the winners
  }
  return options.batch * elements * static_cast<std::int64_t>(sizeof(float));
}

/// The forward pass, one overload for each op; the backward pass is in backward.cc.
template <typename T>
struct Program<T>::Forward {
  Program& program;
  int i;  ///< the node
  void operator()(const graph::Input&) const {}
  void operator()(const graph::Conv2d& op) const {
    conv2d_forward(program.shapes(i), op, program.src(i), program.weight(i, 0), program.weight(i, 1),
                   program.dst(i));
  }
  void operator()(const graph::Dense& op) const {
    if (!op.flatten) return (*this)(op.at_each_place());
    dense_forward(program.shapes(i), program.src(i), program.weight(i, 0), program.weight(i, 1),
                  program.dst(i));
  }
  void operator()(const graph::BatchNorm& op) const {
    if (program.pass_.training && !op.is_frozen)
      batch_norm_forward(program.shapes(i), op, program.groups_, program.src(i), program.weight(i, 0),
                         program.weight(i, 1), program.dst(i),
                         program.statistics_[static_cast<std::size_t>(i)]);
    else
      batch_norm_evaluate(program.shapes(i), op, program.src(i), program.weight(i, 0), program.weight(i, 1),
                          program.weight(i, 2), program.weight(i, 3), program.dst(i));
  }
#define PACELINE_FORWARD(Op, name)                                                     \
  void operator()(const graph::Op&) const {                                            \
    elementwise_forward<graph::Op>(program.shapes(i), program.src(i), program.dst(i)); \
  }
  PACELINE_ELEMENTWISE_OPS(PACELINE_FORWARD)
#undef PACELINE_FORWARD
  void operator()(const graph::MaxPool& op) const {
    max_pool_forward(program.shapes(i), op, program.src(i), program.dst(i),
                     program.winners_[static_cast<std::size_t>(i)].template as<std::int32_t>().data());
  }
  void operator()(const graph::AveragePool& op) const {
    average_pool_forward(program.shapes(i), op, program.src(i), program.dst(i));
  }
  void operator()(const graph::AdaptiveAveragePool& op) const {
    average_pool_forward(program.shapes(i), op, program.src(i), program.dst(i));
  }
  void operator()(const graph::GlobalAveragePool&) const {
    global_average_pool_forward(program.shapes(i), program.src(i), program.dst(i));
  }
  void operator()(const graph::Add&) const {
    add_forward(program.shapes(i), program.src(i, 0), program.src(i, 1), program.dst(i));
  }
  void operator()(const graph::Mul&) const {
    mul_forward(program.shapes(i), program.pixels_of_factor(i), program.src(i, 0), program.src(i, 1),
                program.dst(i));
  }
  void operator()(const graph::Concat&) const { copy(); }
  void operator()(const graph::Slice&) const { copy(); }
  void operator()(const graph::ChannelShuffle&) const { copy(); }
  void copy() const {
    for (const ChannelCopy& one : channel_copies(program.graph_, i))
      copy_channels(program.shapes(i, one.input), one, program.src(i, one.input), program.dst(i));
  }
  void operator()(const graph::Pad& op) const {
    pad_forward(program.shapes(i), op, program.src(i), program.dst(i));
  }
  void operator()(const graph::StochasticDepth& op) const {
    program.drop_samples(i, op.probability, [&](int n, std::int64_t sample, T scale) {
      std::transform(program.src(i) + n * sample, program.src(i) + (n + 1) * sample,
                     program.dst(i) + n * sample, [&](T x) { return scale == 0 ? T{0} : x * scale; });
    });
  }
  void operator()(const graph::LayerNorm& op) const { normalise(SampleGroups::of(op)); }
  void operator()(const graph::GroupNorm& op) const { normalise(SampleGroups::of(op)); }
  void normalise(const SampleGroups& groups) const {
    group_norm_forward(program.shapes(i), groups, program.src(i), program.weight(i, 0), program.weight(i, 1),
                       program.dst(i));
  }
  void operator()(const graph::Scale&) const {
    scale_forward(program.shapes(i), program.src(i), program.weight(i, 0), program.dst(i));
  }
  void operator()(const graph::Dropout& op) const {
    if (program.pass_.training)
      dropout_forward(program.shapes(i), op, program.masks(i, op.probability), program.src(i),
                      program.dst(i));
    else
      std::copy_n(program.src(i), program.shapes(i).dst_elements(), program.dst(i));
  }
  void operator()(const graph::Position&) const {
    position_forward(program.shapes(i), program.src(i), program.weight(i, 0), program.dst(i));
  }
  void operator()(const graph::ClassToken&) const {
    class_token_forward(program.shapes(i), program.src(i), program.weight(i, 0), program.dst(i));
  }
  void operator()(const graph::FirstPlace&) const {
    const OpShapes shapes = program.shapes(i);
    pad_forward(shapes, graph::first_place_of(shapes.src), program.src(i), program.dst(i));
  }
  void operator()(const graph::Attention& op) const {
    attention_forward(program.shapes(i), op, program.src(i), program.dst(i));
  }
  void operator()(const graph::SoftmaxCrossEntropy& op) const {
    OpShapes samples = program.shapes(i);
    std::vector<T> means;
    const T* logits = program.src(i);
    if (program.pass_.views > 1) {
      samples.batch /= program.pass_.views;
      means = mean_logits(samples, program.pass_.views, logits);
      logits = means.data();
    }
    std::copy_n(logits, program.pass_.logits.empty() ? 0 : samples.batch * samples.src.channels,
                program.pass_.logits.begin());
    const auto loss =
        program.pass_.training ? op : graph::SoftmaxCrossEntropy{.label_smoothing = op.label_smoothing};
    program.sums_ = softmax_cross_entropy_forward(samples, loss, logits, program.pass_.labels, program.dst(i),
                                                  &program.exact_loss_, program.pass_.second_labels);
  }
  template <typename Op>
  void operator()(const Op&) const {
    static_assert(sizeof(Op) == 0, "this op of graph::Attributes has no forward case here: add it");
  }
};

template <typename T>
Program<T>::Program(const graph::Graph& graph, const graph::Layout& layout, const CompileOptions& options)
    : graph_(graph),
      layout_(layout),
      seed_(options.seed),
      batch_(options.batch),
      has_two_labels_(options.has_two_labels),
      groups_(groups_of(options)),
      needs_gradient_(graph::needs_gradient(graph)),
      winners_(graph.nodes.size()),
      statistics_(graph.nodes.size()) {
  expects(batch_ >= 1, "a batch holds a sample");
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    learns_.push_back(graph::learns(graph, static_cast<int>(i)));
    const auto elements = static_cast<std::size_t>(batch_ * graph.nodes[i].shape.elements());
    values_.emplace_back(static_cast<std::size_t>(batch_ * kept_elements(graph, i)) * sizeof(T));
    if (options.training && i + 1 < graph.nodes.size()) d_values_.emplace_back(elements * sizeof(T));
    if (graph.nodes[i].template as<graph::MaxPool>())
      winners_[i] = base::Buffer(elements * sizeof(std::int32_t));
  }
}

template <typename T>
LossSums Program<T>::forward(const StepInput& input, std::span<const T> weights) {
  expects(static_cast<int>(input.labels.size()) == batch_, "a step has as many labels as the engine's batch");
  require_second_labels(input, batch_, has_two_labels_);
  pass_ = {.training = true,
           .batch = batch_,
           .views = 1,
           .weights = weights,
           .gradients = {},
           .labels = {input.labels.begin(), input.labels.end()},
           .second_labels = {input.second_labels.begin(), input.second_labels.end()},
           .gradient_scale = input.gradient_scale,
           .step = input.step,
           .first_position = input.first_position};
  return run(input.images);
}

template <typename T>
LossSums Program<T>::evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count,
                              int views, std::span<const T> weights, std::span<double> logits) {
  expects(logits.empty() ||
              static_cast<std::int64_t>(logits.size()) >= std::int64_t{1} * count * graph_.classes(),
          "there is room for the logits of every sample");
  expects(count >= 0 && views >= 1 && count * views <= batch_ && static_cast<int>(labels.size()) >= count,
          "evaluate gets at most a batch, and its labels");
  if (count == 0) return {};
  pass_ = {.training = false,
           .batch = count * views,
           .views = views,
           .weights = weights,
           .gradients = {},
           .labels = {labels.begin(), labels.begin() + count},
           .logits = logits,
           .gradient_scale = 1,
           .step = 0,
           .first_position = 0};
  return run(images);
}

template <typename T>
LossSums Program<T>::run(std::span<const float> images) {
  load_images(images);
  for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
    if (observer_) observer_(i, Pass::forward, true);
    std::visit(Forward{*this, i}, graph_.nodes[static_cast<std::size_t>(i)].op);
    if (observer_) observer_(i, Pass::forward, false);
  }
  return sums_;
}

/// [batch][H][W][C] as the loader gives it to [batch][C][H][W].
template <typename T>
void Program<T>::load_images(std::span<const float> images) {
  const graph::Shape& shape = graph_.input_shape();
  const std::int64_t plane = std::int64_t{1} * shape.height * shape.width;
  expects(static_cast<std::int64_t>(images.size()) >= pass_.batch * shape.elements(),
          "there are as many images as labels");
  T* to = dst(0);
  for (int n = 0; n < pass_.batch; ++n)
    for (int c = 0; c < shape.channels; ++c)
      for (std::int64_t i = 0; i < plane; ++i)
        *to++ = static_cast<T>(images[static_cast<std::size_t>((n * plane + i) * shape.channels + c)]);
}

template <typename T>
OpShapes Program<T>::shapes(int index, int input) const {
  const graph::Node& node = graph_.nodes[static_cast<std::size_t>(index)];
  const auto from = static_cast<std::size_t>(node.inputs[static_cast<std::size_t>(input)]);
  return {pass_.batch, graph_.nodes[from].shape, node.shape};
}

template <typename T>
std::int64_t Program<T>::pixels_of_factor(int node) const {
  return shapes(node, 0).src.elements() / shapes(node, 1).src.elements();
}

template <typename T>
const T* Program<T>::src(int node, int input) const {
  const auto from = graph_.nodes[static_cast<std::size_t>(node)].inputs[static_cast<std::size_t>(input)];
  return values_[static_cast<std::size_t>(from)].template as<T>().data();
}
template <typename T>
T* Program<T>::d_src(int node, int input) {
  const auto to = static_cast<std::size_t>(
      graph_.nodes[static_cast<std::size_t>(node)].inputs[static_cast<std::size_t>(input)]);
  return needs_gradient_[to] ? d_values_[to].template as<T>().data() : nullptr;
}

template <typename T>
const T* Program<T>::weight(int node, std::size_t parameter) const {
  const graph::Slot* found = graph::slot_of(graph_, layout_, node, parameter);
  return found != nullptr ? pass_.weights.data() + found->offset : nullptr;
}
template <typename T>
T* Program<T>::d_weight(int node, std::size_t parameter) {
  const graph::Slot* found = graph::slot_of(graph_, layout_, node, parameter);
  return found != nullptr ? pass_.gradients.data() + found->offset : nullptr;
}

template class Program<float>;
template class Program<double>;

}  // namespace paceline::engine::reference
