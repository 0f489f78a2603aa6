// The rules of ops that normalise or scale each sample by itself: layer norm, group norm, learned factors.

#include <utility>

#include "base/error.h"
#include "graph/ops.h"

namespace paceline::graph {
namespace {

/// Of layer_norm and group_norm.
template <typename Norm>
Shape sample_norm_shape(const OpSite& site) {
  const auto& norm = site.as<Norm>();
  if (!(norm.epsilon > 0))
    base::fail(base::ErrorKind::usage,
               "{} '{}': epsilon must be above 0, but is {}; PyTorch's default is 1e-5",
               rule_of(site.op).kind, site.name, norm.epsilon);
  check_rates(site, norm.rates);
  return site.src[0];
}

Shape group_norm_shape(const OpSite& site) {
  const int groups = site.as<GroupNorm>().groups, channels = site.src[0].channels;
  if (groups < 1 || channels % groups != 0)
    base::fail(base::ErrorKind::usage,
               "group_norm '{}': groups must divide the {} channels of its input, but is {}; take a divisor, "
               "such as 1",
               site.name, channels, groups);
  return sample_norm_shape<GroupNorm>(site);
}

template <typename Norm>
std::vector<ParameterRule> sample_norm_parameters(const OpSite& site) {
  const std::int64_t channels = site.src[0].channels;
  const Rates& rates = site.as<Norm>().rates;
  return {{"weight", {channels}, Role::norm_weight, rates.weight},
          {"bias", {channels}, Role::norm_bias, rates.bias}};
}

Shape scale_shape(const OpSite& site) {
  const auto& scale = site.as<Scale>();
  if (scale.dimensions != 1 && scale.dimensions != 3)
    base::fail(
        base::ErrorKind::usage,
        "scale '{}': dimensions must be 3, for a parameter [channels,1,1], or 1, for [channels], but is "
        "{}; take that of the file with its weights",
        site.name, scale.dimensions);
  check_rates(site, {.weight = scale.weight_rate});
  return site.src[0];
}

std::vector<ParameterRule> scale_parameters(const OpSite& site) {
  const auto& scale = site.as<Scale>();
  std::vector<std::int64_t> shape(static_cast<std::size_t>(scale.dimensions), 1);
  shape.front() = site.src[0].channels;
  return {{"weight", std::move(shape), Role::norm_weight, scale.weight_rate}};
}

}  // namespace

OpRule make_rule(const LayerNorm&) {
  return {.saved = {.src = true, .statistics = true},
          .in_place = true,
          .shape = sample_norm_shape<LayerNorm>,
          .parameters = sample_norm_parameters<LayerNorm>};
}

OpRule make_rule(const GroupNorm&) {
  return {.saved = {.src = true, .statistics = true},
          .in_place = true,
          .shape = group_norm_shape,
          .parameters = sample_norm_parameters<GroupNorm>};
}

OpRule make_rule(const Scale&) {
  return {.saved = {.src = true}, .in_place = true, .shape = scale_shape, .parameters = scale_parameters};
}

}  // namespace paceline::graph
