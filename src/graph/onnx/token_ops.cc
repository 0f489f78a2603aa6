// Ops of vision transformers: positions, class token, attention. A sequence of places is an image here too.

#include <cmath>

#include "graph/onnx/ops.h"

namespace paceline::graph::onnx {
namespace {

/// The image's constant [1, C, H, W]: zero, but for the places from `first` on, which get the op's parameter
/// [places, C].
std::string at_places(const OpToWrite& site, const Shape& image, std::size_t places) {
  const auto values = site.values_of_parameter(0);
  const auto channels = static_cast<std::size_t>(image.channels);
  const auto all = static_cast<std::size_t>(image.elements()) / channels;
  std::vector<float> turned(channels * all);
  for (std::size_t place = 0; place < places; ++place)
    for (std::size_t c = 0; c < channels; ++c) turned[c * all + place] = values[place * channels + c];
  const auto& name = site.graph.parameters[static_cast<std::size_t>(site.node.parameters.front())].name;
  return site.to.constant(name, {1, image.channels, image.height, image.width}, turned);
}

}  // namespace

Value write_op(const OpToWrite& site, const Position& /*op*/) {
  const Shape& image = site.node.shape;
  const auto places = static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width);
  return site.last("Add", {site.image(), at_places(site, image, places)});
}

/// A zero place in front, to which the token is added: so the batch needs no length.
Value write_op(const OpToWrite& site, const ClassToken& /*op*/) {
  const Shape& places = site.node.shape;
  const auto flat = site.step(
      "places", "Reshape",
      {site.image(), site.constant("places_shape", Numbers{0, places.channels, places.height - 1, 1})});
  const auto longer = site.step("longer", "Pad", {flat}, {{"pads", Numbers{0, 0, 1, 0, 0, 0, 0, 0}}});
  return site.last("Add", {longer, at_places(site, places, 1)});
}

Value write_op(const OpToWrite& site, const FirstPlace& /*op*/) {
  return site.last("Slice", {site.image()},
                   {{"axes", Numbers{2, 3}}, {"starts", Numbers{0, 0}}, {"ends", Numbers{1, 1}}});
}

Value write_op(const OpToWrite& site, const Attention& attention) {
  const auto& [channels, height, width] = site.node.shape;
  const std::int64_t heads = attention.heads, depth = channels / heads;
  const auto turned = [&](std::string_view what, const std::string& src) {
    return site.step(what, "Transpose", {src}, {{"perm", Numbers{0, 1, 3, 2}}});
  };
  const auto split = site.step(
      "heads", "Reshape",
      {site.image(),
       site.constant("heads_shape", Numbers{0, 3 * heads, depth, std::int64_t{1} * height * width})});
  const auto third = [&](std::string_view what, std::int64_t which) {  // [N, heads, depth, places]
    return site.step(
        what, "Slice", {split},
        {{"axes", Numbers{1}}, {"starts", Numbers{which * heads}}, {"ends", Numbers{(which + 1) * heads}}});
  };
  const auto products = site.step("products", "MatMul", {turned("queries", third("q", 0)), third("k", 1)});
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(depth)));
  const auto scores = site.step("scores", "Mul", {products, site.constant("factor", factor)});
  const auto weights = site.step("weights", "Softmax", {scores}, {{"axis", 3}});
  const auto sums = site.step("sums", "MatMul", {weights, turned("values", third("v", 2))});
  return site.last("Reshape",
                   {turned("channels", sums), site.constant("shape", Numbers{0, channels, height, width})});
}

}  // namespace paceline::graph::onnx
