#include "graph/onnx/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>
#include <optional>
namespace paceline::graph::onnx {

std::string OpToWrite::step(std::string_view what, std::string_view op, std::vector<std::string> inputs,
                            std::vector<Attribute> attributes) const {
  return to.node(op, std::move(inputs), fmt::format("{}.{}", node.name, what), std::move(attributes));
}

std::string OpToWrite::constant(std::string_view what, float value) const {
  return to.constant(fmt::format("{}.{}", node.name, what), {}, {&value, 1});
}

std::string OpToWrite::constant(std::string_view what, const Numbers& values) const {
  return to.constant(fmt::format("{}.{}", node.name, what), values);
}

Value OpToWrite::last(std::string_view op, std::vector<std::string> inputs, std::vector<Attribute> attributes,
                      bool is_image) const {
  return {to.node(op, std::move(inputs), node.name, std::move(attributes)), is_image};
}

// In the shape of a Reshape 0 is the input's own length: of the batch here.

std::string OpToWrite::image(std::size_t i) const {
  if (src[i].is_image) return src[i].name;
  const Shape& shape = src_shape(i);
  return step("image", "Reshape",
              {src[i].name, constant("image_shape", Numbers{0, shape.channels, shape.height, shape.width})});
}

std::string OpToWrite::features(std::size_t i) const {
  return src[i].is_image ? step("flat", "Flatten", {src[i].name}, {{"axis", 1}}) : src[i].name;
}

std::span<const float> OpToWrite::values_of_parameter(std::size_t i) const {
  const auto& slot = layout.slots[static_cast<std::size_t>(
      layout.slot_of_parameter[static_cast<std::size_t>(node.parameters[i])])];
  return weights.subspan(static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.elements));
}

std::string OpToWrite::parameter(std::size_t i, const Numbers& shape) const {
  const Parameter& own = graph.parameters[static_cast<std::size_t>(node.parameters[i])];
  return to.constant(own.name, shape.empty() ? own.shape : shape, values_of_parameter(i));
}

namespace {

Numbers numbers(const Pair& pair) { return {pair.height, pair.width}; }

/// Four widths in ONNX's order: before each axis, then behind each.
Numbers pads(const Pair& before, const Pair& behind) {
  return {before.height, before.width, behind.height, behind.width};
}

/// The op on its only input, of either form.
Value same_form(const OpToWrite& site, std::string_view op, std::vector<Attribute> attributes = {}) {
  return site.last(op, {site.src[0].name}, std::move(attributes), site.src[0].is_image);
}

/// The op on two inputs, as features where both are.
Value of_two(const OpToWrite& site, std::string_view op) {
  if (!site.src[0].is_image && !site.src[1].is_image)
    return site.last(op, {site.src[0].name, site.src[1].name}, {}, false);
  return site.last(op, {site.image(0), site.image(1)});
}

/// The input times `factor`.
Value times_itself(const OpToWrite& site, const std::string& factor) {
  return site.last("Mul", {site.src[0].name, factor}, {}, site.src[0].is_image);
}

/// min(max(x + 3, 0), 6), of which a hard sigmoid is the sixth part. ONNX's HardSigmoid is passed over:
/// OpenCV 4.6 loses its shape.
std::string six_hard_sigmoids(const OpToWrite& site) {
  const auto moved = site.step("moved", "Add", {site.src[0].name, site.constant("three", 3.0F)});
  return site.step("bounded", "Clip", {moved}, {{"min", 0.0F}, {"max", 6.0F}});
}

/// How far the last window of a pool that rounds its size up reaches beyond the padding. As padding at the
/// end it gives that size without ONNX's ceil_mode, whose rule for the last window differs by version.
Pair overhang(const Shape& src, const Shape& dst, const Pair& kernel, const Pair& stride,
              const Pair& padding) {
  const auto beyond = [](int length, int count, int window, int step, int pad) {
    return std::max(0, (count - 1) * step + window - length - 2 * pad);
  };
  return {beyond(src.height, dst.height, kernel.height, stride.height, padding.height),
          beyond(src.width, dst.width, kernel.width, stride.width, padding.width)};
}

Pair sum(const Pair& a, const Pair& b) { return {a.height + b.height, a.width + b.width}; }

/// `src` with zeros on all four axes, before and behind; as it is where there are none.
std::string with_zeros(const OpToWrite& site, const std::string& src, const Numbers& widths) {
  if (std::ranges::all_of(widths, [](auto width) { return width == 0; })) return src;
  return site.step("padded", "Pad", {src}, {{"pads", widths}});
}

/// ONNX Runtime (1.20) merges a Pad into a pool, whose own padding is no zero: an average then divides by
/// other counts. A Reshape between them, which costs nothing, keeps them apart. `zeros`: what was added to
/// the op's input on each side.
std::string apart_from_pad(const OpToWrite& site, const std::string& src, const Pair& zeros = 0) {
  if (!site.to.is_made_by(src, "Pad")) return src;
  const Shape& shape = site.src_shape();
  return site.step(
      "apart", "Reshape",
      {src, site.constant("apart_shape", Numbers{0, shape.channels, shape.height + 2 * zeros.height,
                                                 shape.width + 2 * zeros.width})});
}

/// Windows of one size and distance that are those of an adaptive pool along an axis; nothing where its
/// windows differ. See AdaptiveAveragePool.
struct Windows {
  int size = 1, stride = 1;
};
std::optional<Windows> even_windows(int length, int count) {
  const auto begin = [&](int i) { return i * length / count; };
  const auto end = [&](int i) { return ((i + 1) * length + count - 1) / count; };
  const Windows windows{.size = end(0), .stride = count > 1 ? begin(1) : length};
  if (windows.stride < 1) return std::nullopt;
  for (int i = 0; i < count; ++i)
    if (begin(i) != i * windows.stride || end(i) - begin(i) != windows.size) return std::nullopt;
  return windows;
}

/// [length, count]: column i holds the weights of the elements whose mean output i is.
std::vector<float> means(int length, int count) {
  std::vector<float> matrix(static_cast<std::size_t>(length) * static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const int begin = i * length / count, end = ((i + 1) * length + count - 1) / count;
    for (int at = begin; at < end; ++at)
      matrix[static_cast<std::size_t>(at * count + i)] = 1.0F / static_cast<float>(end - begin);
  }
  return matrix;
}

}  // namespace

Value write_op(const OpToWrite& site, const Input& /*op*/) { return site.src[0]; }

Value write_op(const OpToWrite& site, const Conv2d& conv) {
  std::vector<std::string> inputs{site.image(), site.parameter(0)};
  if (conv.bias) inputs.push_back(site.parameter(1));
  return site.last("Conv", std::move(inputs),
                   {{"kernel_shape", numbers(conv.kernel)},
                    {"strides", numbers(conv.stride)},
                    {"pads", pads(conv.padding, conv.padding)},
                    {"dilations", numbers(conv.dilation)},
                    {"group", conv.groups}});
}

Value write_op(const OpToWrite& site, const Dense& dense) {
  if (!dense.flatten) {
    std::vector<std::string> inputs{site.image(),
                                    site.parameter(0, {dense.features, site.src_shape().channels, 1, 1})};
    if (dense.bias) inputs.push_back(site.parameter(1));
    return site.last("Conv", std::move(inputs), {{"kernel_shape", Numbers{1, 1}}, {"pads", pads(0, 0)}});
  }
  // Gemm takes no two inputs in this version.
  const std::vector<float> zeros(dense.bias ? 0 : static_cast<std::size_t>(dense.features));
  const auto bias =
      dense.bias ? site.parameter(1) : site.to.constant(site.node.name + ".no_bias", {dense.features}, zeros);
  return site.last("Gemm", {site.features(), site.parameter(0), bias}, {{"transB", 1}}, false);
}

Value write_op(const OpToWrite& site, const BatchNorm& norm) {
  return site.last(
      "BatchNormalization",
      {site.src[0].name, site.parameter(0), site.parameter(1), site.parameter(2), site.parameter(3)},
      {{"epsilon", static_cast<float>(norm.epsilon)}}, site.src[0].is_image);
}

Value write_op(const OpToWrite& site, const Relu& /*op*/) { return same_form(site, "Relu"); }

Value write_op(const OpToWrite& site, const Relu6& /*op*/) {
  return same_form(site, "Clip", {{"min", 0.0F}, {"max", 6.0F}});
}

Value write_op(const OpToWrite& site, const Gelu& /*op*/) {
  constexpr float kRootHalf = static_cast<float>(std::numbers::sqrt2 / 2);
  const auto scaled = site.step("scaled", "Mul", {site.src[0].name, site.constant("root_half", kRootHalf)});
  const auto erf = site.step("erf", "Erf", {scaled});
  const auto twice = site.step("twice_phi", "Add", {erf, site.constant("one", 1.0F)});
  return times_itself(site, site.step("phi", "Mul", {twice, site.constant("half", 0.5F)}));
}

Value write_op(const OpToWrite& site, const Silu& /*op*/) {
  return times_itself(site, site.step("sigmoid", "Sigmoid", {site.src[0].name}));
}

Value write_op(const OpToWrite& site, const Sigmoid& /*op*/) { return same_form(site, "Sigmoid"); }

Value write_op(const OpToWrite& site, const Tanh& /*op*/) { return same_form(site, "Tanh"); }

Value write_op(const OpToWrite& site, const HardSigmoid& /*op*/) {
  return site.last("Div", {six_hard_sigmoids(site), site.constant("six", 6.0F)}, {}, site.src[0].is_image);
}

Value write_op(const OpToWrite& site, const HardSwish& /*op*/) {
  return times_itself(site,
                      site.step("factor", "Div", {six_hard_sigmoids(site), site.constant("six", 6.0F)}));
}

Value write_op(const OpToWrite& site, const MaxPool& pool) {
  const auto more = overhang(site.src_shape(), site.node.shape, pool.kernel, pool.stride, pool.padding);
  return site.last("MaxPool", {apart_from_pad(site, site.image())},
                   {{"kernel_shape", numbers(pool.kernel)},
                    {"strides", numbers(pool.stride)},
                    {"pads", pads(pool.padding, sum(pool.padding, more))}});
}

Value write_op(const OpToWrite& site, const AveragePool& pool) {
  const auto more = overhang(site.src_shape(), site.node.shape, pool.kernel, pool.stride, pool.padding);
  // Padding that counts is written as zeros before the pool: OpenCV passes over count_include_pad, and the
  // overhang never counts.
  const auto& [tall, wide] = pool.padding;
  auto src = site.image();
  if (pool.count_padding) src = with_zeros(site, src, {0, 0, tall, wide, 0, 0, tall, wide});
  src = apart_from_pad(site, src, pool.count_padding ? pool.padding : Pair(0));
  const Pair padding = pool.count_padding ? Pair(0) : pool.padding;
  return site.last("AveragePool", {src},
                   {{"kernel_shape", numbers(pool.kernel)},
                    {"strides", numbers(pool.stride)},
                    {"pads", pads(padding, sum(padding, more))}});
}

Value write_op(const OpToWrite& site, const AdaptiveAveragePool& pool) {
  const auto& [channels, height, width] = site.src_shape();
  const auto rows = even_windows(height, pool.size.height), columns = even_windows(width, pool.size.width);
  if (rows && columns)
    return site.last("AveragePool", {apart_from_pad(site, site.image())},
                     {{"kernel_shape", Numbers{rows->size, columns->size}},
                      {"strides", Numbers{rows->stride, columns->stride}},
                      {"pads", pads(0, 0)}});
  // Constants stand on the right, where OpenCV takes them.
  const Attribute turn{"perm", Numbers{0, 1, 3, 2}};
  const auto of_columns = site.to.constant(site.node.name + ".of_columns", {width, pool.size.width},
                                           means(width, pool.size.width));
  const auto of_rows = site.to.constant(site.node.name + ".of_rows", {height, pool.size.height},
                                        means(height, pool.size.height));
  const auto narrow = site.step("columns", "MatMul", {site.image(), of_columns});
  const auto turned = site.step("turned", "Transpose", {narrow}, {turn});
  return site.last("Transpose", {site.step("rows", "MatMul", {turned, of_rows})}, {turn});
}

Value write_op(const OpToWrite& site, const GlobalAveragePool& /*op*/) {
  return site.last("GlobalAveragePool", {site.image()});
}

Value write_op(const OpToWrite& site, const Add& /*op*/) { return of_two(site, "Add"); }

Value write_op(const OpToWrite& site, const Mul& /*op*/) { return of_two(site, "Mul"); }

Value write_op(const OpToWrite& site, const Concat& /*op*/) {
  const bool is_image = std::ranges::any_of(site.src, [](const Value& one) { return one.is_image; });
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < site.src.size(); ++i)
    inputs.push_back(is_image ? site.image(i) : site.src[i].name);
  return site.last("Concat", std::move(inputs), {{"axis", 1}}, is_image);
}

Value write_op(const OpToWrite& site, const Slice& slice) {
  return same_form(site, "Slice",
                   {{"axes", Numbers{1}},
                    {"starts", Numbers{slice.begin}},
                    {"ends", Numbers{slice.begin + slice.channels}}});
}

Value write_op(const OpToWrite& site, const ChannelShuffle& shuffle) {
  const auto& [channels, height, width] = site.node.shape;
  const auto grouped = site.step(
      "grouped", "Reshape",
      {site.image(), site.constant("grouped_shape", Numbers{0, shuffle.groups, channels / shuffle.groups,
                                                            std::int64_t{1} * height * width})});
  const auto turned = site.step("turned", "Transpose", {grouped}, {{"perm", Numbers{0, 2, 1, 3}}});
  return site.last("Reshape", {turned, site.constant("shape", Numbers{0, channels, height, width})});
}

Value write_op(const OpToWrite& site, const Pad& pad) {
  const auto& [channels, height, width] = site.src_shape();
  // Some runtimes take no negative widths, which cut off.
  const auto cut = [](int width_of_pad) { return std::max(0, -width_of_pad); };
  const auto add = [](int width_of_pad) { return std::max(0, width_of_pad); };
  auto src = site.image();
  if (std::min({pad.front, pad.back, pad.top, pad.bottom, pad.left, pad.right}) < 0)
    src = site.step(
        "cut", "Slice", {src},
        {{"axes", Numbers{1, 2, 3}},
         {"starts", Numbers{cut(pad.front), cut(pad.top), cut(pad.left)}},
         {"ends", Numbers{channels - cut(pad.back), height - cut(pad.bottom), width - cut(pad.right)}}});
  return {with_zeros(site, src,
                     {0, add(pad.front), add(pad.top), add(pad.left), 0, add(pad.back), add(pad.bottom),
                      add(pad.right)}),
          true};
}

// Identity in evaluation.

Value write_op(const OpToWrite& site, const StochasticDepth& /*op*/) { return site.src[0]; }

Value write_op(const OpToWrite& site, const Dropout& /*op*/) { return site.src[0]; }

/// The loss is left out; its input is what an exported model returns.
Value write_op(const OpToWrite& site, const SoftmaxCrossEntropy& /*op*/) { return {site.features(), false}; }

}  // namespace paceline::graph::onnx
