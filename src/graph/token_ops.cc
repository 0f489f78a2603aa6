// The rules of ops on tokens: the places of an image as a sequence, as in a vision transformer (Dosovitskiy
// et al., 2021).

#include "base/error.h"
#include "graph/ops.h"

namespace paceline::graph {
namespace {

std::int64_t places(const Shape& shape) { return std::int64_t{shape.height} * shape.width; }

Shape position_shape(const OpSite& site) {
  check_rates(site, site.as<Position>().rates);
  return site.src[0];
}

/// PyTorch's shape: a sequence of one sample.
std::vector<ParameterRule> position_parameters(const OpSite& site) {
  return {{"weight",
           {1, places(site.src[0]), site.src[0].channels},
           Role::weight,
           site.as<Position>().rates.weight}};
}

Shape class_token_shape(const OpSite& site) {
  check_rates(site, site.as<ClassToken>().rates);
  constexpr std::int64_t kMost = std::int64_t{1} << 28;  // as pad
  if (places(site.src[0]) >= kMost)
    base::fail(base::ErrorKind::usage,
               "class_token '{}': its input must have fewer than {} places, but is {}; take larger patches",
               site.name, kMost, text(site.src[0]));
  return {site.src[0].channels, static_cast<int>(places(site.src[0])) + 1, 1};
}

std::vector<ParameterRule> class_token_parameters(const OpSite& site) {
  return {{"weight", {1, 1, site.src[0].channels}, Role::weight, site.as<ClassToken>().rates.weight}};
}

Shape attention_shape(const OpSite& site) {
  const int heads = site.as<Attention>().heads;
  const Shape& src = site.src[0];
  if (src.channels % 3 != 0)
    base::fail(
        base::ErrorKind::usage,
        "attention '{}': its input must be q, k and v, three times as many channels as its output, but "
        "is {}; put a dense layer with flatten = false before it",
        site.name, text(src));
  if (heads < 1 || src.channels / 3 % heads != 0)
    base::fail(base::ErrorKind::usage,
               "attention '{}': heads must divide the {} channels of its output, but is {}; correct it",
               site.name, src.channels / 3, heads);
  return {src.channels / 3, src.height, src.width};
}

/// q k^T, and the probabilities times v.
std::int64_t attention_multiply_adds(const OpSite&, const Shape& dst) {
  return 2 * places(dst) * dst.elements();
}

}  // namespace

OpRule make_rule(const Position&) {
  return {.in_place = true, .shape = position_shape, .parameters = position_parameters};
}

OpRule make_rule(const ClassToken&) {
  return {.shape = class_token_shape, .parameters = class_token_parameters};
}

OpRule make_rule(const FirstPlace&) {
  return {.shape = [](const OpSite& site) { return Shape{site.src[0].channels, 1, 1}; }};
}

// The probabilities are not kept: the backward pass computes them again from q, k and two numbers for each
// place and head, one product more than the two for each of the forward pass's two. A device may take the
// mean of their gradients from the output.
OpRule make_rule(const Attention&) {
  return {.saved = {.src = true, .dst = true},
          .shape = attention_shape,
          .multiply_adds = attention_multiply_adds,
          .backward_cost = 2.5};
}

}  // namespace paceline::graph
