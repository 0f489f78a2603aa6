#include "engine/cuda/conv_problem.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/cuda/storage.h"

namespace paceline::engine::cuda {
namespace {

void require_positions(const ConvProblem& problem, const char* along, int graph::Pair::*axis, int out, int in,
                       int taps) {
  const int kernel = problem.dilation.*axis * (taps - 1) + 1;
  const int covered = in + 2 * (problem.padding.*axis);
  require_of(problem, kernel <= covered, "its kernel's {} is {}, and may be at most {}, the padded input's",
             along, kernel, covered);
  const int follows = (covered - kernel) / problem.stride.*axis + 1;
  require_of(problem, out == follows,
             "its output's {} must be {} by input, kernel, stride and padding, but is {}", along, follows,
             out);
}

/// A depthwise layer has more groups where its channels are padded; other groups must not be padded.
int padded_groups(const graph::Node& node, const graph::Conv2d& conv, int channels) {
  const bool is_padded =
      channels != padded_channels(channels) || conv.channels != padded_channels(conv.channels);
  if (conv.groups == 1 || !is_padded) return conv.groups;
  if (conv.groups != channels || conv.channels != channels)
    base::fail(base::ErrorKind::usage,
               "conv2d '{}': with several groups of several channels the cuda engine needs input and output "
               "channels that are multiples of 8, but they are {} and {}; change them, or take --device cpu",
               node.name, channels, conv.channels);
  return padded_channels(channels);
}

}  // namespace

AlgorithmRefused::AlgorithmRefused(const ConvProblem& problem, const std::string& algorithm,
                                   const std::string& why)
    : Error(base::ErrorKind::device,
            fmt::format("convolution ({}): {} {}", describe(problem), algorithm, why)),
      why_(why) {}

ConvProblem conv_problem(const graph::Graph& graph, const graph::Node& node, int batch, Precision precision,
                         ConvDirection direction) {
  base::expects(batch >= 1, "a convolution has at least one sample");
  const graph::Shape& src = graph.nodes[static_cast<std::size_t>(node.inputs.front())].shape;
  ConvProblem problem{.direction = direction, .precision = precision, .samples = batch};
  problem.channels_in = padded_channels(src.channels);
  problem.channels_out = padded_channels(node.shape.channels);
  problem.height_out = node.shape.height;
  problem.width_out = node.shape.width;
  if (const auto* conv = node.as<graph::Conv2d>()) {
    problem.height_in = src.height;
    problem.width_in = src.width;
    problem.kernel_height = conv->kernel.height;
    problem.kernel_width = conv->kernel.width;
    problem.stride = conv->stride;
    problem.padding = conv->padding;
    problem.dilation = conv->dilation;
    problem.groups = padded_groups(node, *conv, src.channels);
  } else {
    const auto* dense = node.as<graph::Dense>();
    base::expects(dense != nullptr, "only conv2d and dense are convolutions");
    problem.height_in = dense->flatten ? 1 : src.height;
    problem.width_in = dense->flatten ? 1 : src.width;
    if (dense->flatten) problem.channels_in *= src.height * src.width;
  }
  return problem;
}

std::string describe(const ConvProblem& p) {
  return fmt::format("{}, {}, {}x{}x{}x{} to {}x{}x{}x{}, kernel {}x{}, stride {}, padding {}{}{}",
                     name_of(p.direction), name_of(p.precision), p.samples, p.height_in, p.width_in,
                     p.channels_in, p.samples, p.height_out, p.width_out, p.channels_out, p.kernel_height,
                     p.kernel_width, text(p.stride), text(p.padding),
                     p.dilation != 1 ? ", dilation " + text(p.dilation) : "",
                     p.groups > 1 ? fmt::format(", groups {}", p.groups) : "");
}

void check(const ConvProblem& problem) {
  const struct {
    const char* name;
    int value, least;
  } sizes[] = {{"number of samples", problem.samples, 1},
               {"input's channels", problem.channels_in, 1},
               {"input's height", problem.height_in, 1},
               {"input's width", problem.width_in, 1},
               {"output's channels", problem.channels_out, 1},
               {"output's height", problem.height_out, 1},
               {"output's width", problem.width_out, 1},
               {"kernel's height", problem.kernel_height, 1},
               {"kernel's width", problem.kernel_width, 1},
               {"stride", std::min(problem.stride.height, problem.stride.width), 1},
               {"padding", std::min(problem.padding.height, problem.padding.width), 0},
               {"dilation", std::min(problem.dilation.height, problem.dilation.width), 1},
               {"number of groups", problem.groups, 1}};
  for (const auto& size : sizes)
    require_of(problem, size.value >= size.least, "its {} must be at least {}, but is {}", size.name,
               size.least, size.value);
  for (const auto& [name, channels] :
       {std::pair{"input", problem.channels_in}, std::pair{"output", problem.channels_out}})
    require_of(problem, channels == padded_channels(channels),
               "its {}'s channels must be padded to a multiple of 8, but are {}", name, channels);
  require_of(problem, problem.channels_in % problem.groups == 0 && problem.channels_out % problem.groups == 0,
             "its groups must divide both numbers of channels, but are {}", problem.groups);
  require_positions(problem, "height", &graph::Pair::height, problem.height_out, problem.height_in,
                    problem.kernel_height);
  require_positions(problem, "width", &graph::Pair::width, problem.width_out, problem.width_in,
                    problem.kernel_width);
}

void check_operands(const ConvProblem& problem, std::int64_t src_elements, std::int64_t weight_elements,
                    std::int64_t dst_elements) {
  check(problem);
  const struct {
    const char* name;
    std::int64_t wanted, there;
  } operands[] = {{"input", problem.src_elements(), src_elements},
                  {"weight", problem.weight_elements(), weight_elements},
                  {"output", problem.dst_elements(), dst_elements}};
  for (const auto& operand : operands)
    require_of(problem, operand.wanted == operand.there,
               "its {} must have {} elements, but the layer's has {}; please report it", operand.name,
               operand.wanted, operand.there);
}

}  // namespace paceline::engine::cuda
