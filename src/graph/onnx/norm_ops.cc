// Ops that normalise or scale each sample by itself: opset 9 has none of them, so they are written out.

#include "graph/onnx/ops.h"

namespace paceline::graph::onnx {
namespace {

/// (src - mean) / sqrt(variance + epsilon), with the mean and variance over `axes`.
std::string whitened(const OpToWrite& site, const std::string& src, const Numbers& axes, double epsilon) {
  const auto mean = site.step("mean", "ReduceMean", {src}, {{"axes", axes}});
  const auto centred = site.step("centred", "Sub", {src, mean});
  const auto squares = site.step("squares", "Mul", {centred, centred});
  const auto variance = site.step("variance", "ReduceMean", {squares}, {{"axes", axes}});
  const auto above =
      site.step("above_zero", "Add", {variance, site.constant("epsilon", static_cast<float>(epsilon))});
  return site.step("whitened", "Div", {centred, site.step("deviation", "Sqrt", {above})});
}

/// A parameter [C] as [C, 1, 1].
std::string of_channels(const OpToWrite& site, std::size_t parameter) {
  return site.parameter(parameter, {site.node.shape.channels, 1, 1});
}

Value weighted(const OpToWrite& site, const std::string& src) {
  return site.last("Add", {site.step("weighted", "Mul", {src, of_channels(site, 0)}), of_channels(site, 1)});
}

}  // namespace

Value write_op(const OpToWrite& site, const LayerNorm& norm) {
  return weighted(site, whitened(site, site.image(), {1}, norm.epsilon));
}

Value write_op(const OpToWrite& site, const GroupNorm& norm) {
  const auto& [channels, height, width] = site.node.shape;
  const Numbers grouped{0, norm.groups, channels / norm.groups, std::int64_t{1} * height * width};
  const auto groups = site.step("groups", "Reshape", {site.image(), site.constant("groups_shape", grouped)});
  return weighted(site, site.step("image", "Reshape",
                                  {whitened(site, groups, {2, 3}, norm.epsilon),
                                   site.constant("shape", Numbers{0, channels, height, width})}));
}

Value write_op(const OpToWrite& site, const Scale& /*op*/) {
  return site.last("Mul", {site.image(), of_channels(site, 0)});
}

}  // namespace paceline::graph::onnx
