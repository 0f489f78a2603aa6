#pragma once

/// What to compute, not how: a static graph of ops with shapes and parameters.
///
/// A Graph is built once for a model (zoo.h). Nothing changes it afterwards, so any
/// number of threads may share it. It does not depend on the batch: every shape here is that of one sample.
///
/// Legend (also of the kernels): N batch, C channels in, H W height and width in, K channels out,
/// R S kernel height and width, P Q height and width out.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "graph/elementwise.h"

namespace paceline::graph {

/// One sample's activation: [channels][height][width] logically; features are [channels][1][1]. Engines
/// choose the order in memory.
struct Shape {
  int channels = 0;
  int height = 1;
  int width = 1;
  [[nodiscard]] std::int64_t elements() const { return std::int64_t{1} * channels * height * width; }
  bool operator==(const Shape&) const = default;
};

/// A number for the height and one for the width; a single number is both.
struct Pair {
  int height = 0, width = 0;
  constexpr Pair(int both) : height(both), width(both) {}
  constexpr Pair(int of_height, int of_width) : height(of_height), width(of_width) {}
  [[nodiscard]] constexpr bool is_square() const { return height == width; }
  [[nodiscard]] constexpr std::int64_t product() const { return std::int64_t{1} * height * width; }
  bool operator==(const Pair&) const = default;
};

// The attributes of each op. Inputs are other nodes; parameters follow from attributes and input shapes.
struct Input {
  Shape shape;
};

/// The initial value of a layer's weight (docs/models.md). Biases start as PyTorch's do, except with
/// `normal`.
enum class Init {
  usual,   ///< random as in PyTorch, see initialise.h; batch norm: 1
  zero,    ///< all zero
  dirac,   ///< convolutions: filter i copies channel i; filters beyond the number of channels are random
  whiten,  ///< a convolution of the input image: filters that decorrelate its patches, see initialise.h
  normal,  ///< convolutions, dense: normal with deviation 0.02, and the bias is zero (ConvNeXt)
};

/// Factors on the learning rate of a layer's parameters; 0 freezes them, without weight decay. For others the
/// weight decay is divided by the factor, so that all parameters decay at the same rate.
struct Rates {
  double weight = 1;
  double bias = 1;
  bool operator==(const Rates&) const = default;
};

/// Weight [K, C / groups, R, S], bias [K] if `bias`; cross-correlation, zero padding on both sides of each
/// axis. Output channels of the g-th of `groups` equal groups read the g-th group of input channels; a
/// depthwise one has C groups.
struct Conv2d {
  int channels = 0;
  Pair kernel = 3;
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;  ///< distance between two taps
  int groups = 1;
  bool bias = false;
  Init init = Init::usual;
  Rates rates = {};
};
struct Dense {  ///< weight [features, C*H*W], bias [features]; flattens its input in C, H, W order
  int features = 0;
  bool bias = true;
  Init init = Init::usual;  ///< usual, zero or normal
  Rates rates = {};
  bool flatten = true;  ///< false: at each place, from C channels to `features`; weight [features, C]
  /// The 1x1 convolution that computes the same where it does not flatten.
  [[nodiscard]] Conv2d at_each_place() const { return {.channels = features, .kernel = 1, .bias = bias}; }
};
struct BatchNorm {  ///< weight, bias, running_mean, running_var [C]
  double epsilon = 1e-5;
  double momentum = 0.1;    ///< running = (1 - momentum) * running + momentum * batch (variance unbiased)
  Init init = Init::usual;  ///< of the weight; usual is 1
  Rates rates = {};
  bool is_frozen = false;  ///< training too normalises with the running statistics, and does not move them
};
/// Normalises the channels of each place of each sample. Weight, bias [C].
struct LayerNorm {
  double epsilon = 1e-5;
  Rates rates = {};
};
/// Normalises each of `groups` equal groups of channels of each sample, over all its places. Weight, bias
/// [C].
struct GroupNorm {
  int groups = 1;
  double epsilon = 1e-5;
  Rates rates = {};
};
struct Scale {             ///< a learned factor for each channel: weight [C, 1, 1]
  double initial = 1;      ///< of all factors
  int dimensions = 3;      ///< of the weight in files; 1: [C]
  double weight_rate = 1;  ///< see Rates
};
#define PACELINE_STRUCT(Op, name) \
  struct Op {};
PACELINE_ELEMENTWISE_OPS(PACELINE_STRUCT)
#undef PACELINE_STRUCT
struct MaxPool {
  Pair kernel = 2;
  Pair stride = 2;
  Pair padding = 0;   ///< with -infinity
  bool ceil = false;  ///< round the size up, see positions() in ops.h
};
struct AveragePool {
  Pair kernel = 2;
  Pair stride = 2;
  Pair padding = 0;  ///< with zeros
  bool ceil = false;
  bool count_padding = true;  ///< in the divisor; but never what lies beyond the padding (PyTorch's rule)
};
/// Output i of n along an axis of `length` is the mean of elements floor(i length / n) to
/// ceil((i + 1) length / n) - 1.
struct AdaptiveAveragePool {
  Pair size = 1;
};
struct GlobalAveragePool {};
struct Add {};  ///< two inputs of one shape
struct Mul {};  ///< two inputs of one shape; or the second is [C,1,1], a factor for each channel of the first
struct Concat {};  ///< two or more inputs of one height and width; their channels one after the other
struct Slice {     ///< channels begin .. begin + channels - 1
  int begin = 0;
  int channels = 0;
};
struct ChannelShuffle {  ///< channel g * (C / groups) + i becomes channel i * groups + g (ShuffleNet)
  int groups = 2;
};
/// Zeros around the image, and channels of zeros before (`front`) and after (`back`) its own; negative ones
/// are cut off instead.
struct Pad {
  int top = 0, bottom = 0, left = 0, right = 0, front = 0, back = 0;
};
/// What is cut off to leave the first place of an image.
[[nodiscard]] constexpr Pad first_place_of(const Shape& src) {
  return {.bottom = 1 - src.height, .right = 1 - src.width};
}
struct StochasticDepth {  ///< drops whole samples with this probability and scales the others by 1 / (1 -
                          ///< it); identity in evaluation (Huang et al., 2016)
  double probability = 0.2;
};
struct Position {  ///< adds weight [1, H*W, C], which is learned, to the channels of each place (ViT)
  Rates rates = {};
};
struct ClassToken {  ///< weight [1, 1, C] in front of the places of its input: [C, H*W + 1, 1]
  Rates rates = {};
};
struct FirstPlace {};  ///< the channels of the first place: of [C,H,W] the [C,1,1] that a class token became
/// softmax(q k^T / sqrt(d)) v over all places of a sample, for each of `heads` groups of d = C / heads
/// channels. Input: q, k and v, [3 C, H, W]; output [C, H, W]. No mask, no dropout.
struct Attention {
  int heads = 1;
};
struct Dropout {  ///< keeps with 1 - probability and scales by its inverse; identity in evaluation
  double probability = 0.5;
};
struct SoftmaxCrossEntropy {  ///< input: logits [classes]; the graph's last node
  double label_smoothing = 0;
  /// [classes], in training; evaluation never has weights. Empty: each is 1.
  std::vector<double> class_weights = {};
};

/// All ops: X(op, its name in errors and model files). The variant, the rules of ops.h and the declarations
/// of the engines follow from this list.
#define PACELINE_OPS(X)                         \
  X(Input, input)                               \
  X(Conv2d, conv2d)                             \
  X(Dense, dense)                               \
  X(BatchNorm, batch_norm)                      \
  PACELINE_ELEMENTWISE_OPS(X)                   \
  X(MaxPool, max_pool)                          \
  X(AveragePool, average_pool)                  \
  X(AdaptiveAveragePool, adaptive_average_pool) \
  X(GlobalAveragePool, global_average_pool)     \
  X(Add, add)                                   \
  X(Mul, mul)                                   \
  X(Concat, concat)                             \
  X(Slice, slice)                               \
  X(ChannelShuffle, channel_shuffle)            \
  X(Pad, pad)                                   \
  X(StochasticDepth, stochastic_depth)          \
  X(LayerNorm, layer_norm)                      \
  X(GroupNorm, group_norm)                      \
  X(Scale, scale)                               \
  X(Dropout, dropout)                           \
  X(Position, position)                         \
  X(ClassToken, class_token)                    \
  X(FirstPlace, first_place)                    \
  X(Attention, attention)                       \
  X(SoftmaxCrossEntropy, softmax_cross_entropy)

template <typename None, typename... Ops>
struct OneOf {
  using Type = std::variant<Ops...>;
};
#define PACELINE_ALTERNATIVE(Op, name) , Op
using Attributes = OneOf<void PACELINE_OPS(PACELINE_ALTERNATIVE)>::Type;
#undef PACELINE_ALTERNATIVE

/// What a parameter is. It decides its initial value and how the optimizer treats it.
enum class Role { weight, bias, norm_weight, norm_bias, running_mean, running_var };
[[nodiscard]] constexpr bool is_trainable(Role role) { return role < Role::running_mean; }

/// A named array of the model, with PyTorch's name and shape.
struct Parameter {
  std::string name;                 ///< "layer1.0.conv1.weight"
  std::vector<std::int64_t> shape;  ///< [K, C, R, S] for convolutions, [K, C] for dense layers, [C]
  Role role = Role::weight;
  int node = 0;     ///< index of the op that owns it
  double rate = 1;  ///< factor of the learning rate, see Rates
  [[nodiscard]] bool is_frozen() const { return rate == 0; }
  [[nodiscard]] std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t length : shape) count *= length;
    return count;
  }
};

/// One op in the graph.
struct Node {
  std::string name;  ///< PyTorch's module path for ops with parameters, a readable name for the others
  Attributes op;
  std::vector<int> inputs;      ///< indices of earlier nodes
  Shape shape;                  ///< of the output, one sample
  std::vector<int> parameters;  ///< indices into Graph::parameters, in the op's own order
  template <typename Op>
  [[nodiscard]] const Op* as() const {
    return std::get_if<Op>(&op);
  }
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;  ///< in topological order; [0] is the Input, the last the SoftmaxCrossEntropy
  std::vector<Parameter> parameters;
  [[nodiscard]] const Shape& input_shape() const { return nodes.front().shape; }
  /// Number of classes.
  [[nodiscard]] int classes() const { return nodes[static_cast<std::size_t>(logits())].shape.channels; }
  /// Index of the node that computes the logits.
  [[nodiscard]] int logits() const { return nodes.back().inputs.front(); }
  /// Number of parameter elements that training changes: running statistics and frozen parameters do not
  /// count.
  [[nodiscard]] std::int64_t trainable_elements() const {
    std::int64_t count = 0;
    for (const Parameter& parameter : parameters)
      if (is_trainable(parameter.role) && !parameter.is_frozen()) count += parameter.elements();
    return count;
  }
};

}  // namespace paceline::graph
