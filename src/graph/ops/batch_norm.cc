#include <fmt/core.h>

#include "base/error.h"
#include "graph/ops/rules.h"

namespace paceline::graph {
namespace {

Shape shape(const OpSite& site) {
  const auto& norm = site.as<BatchNorm>();
  if (!(norm.epsilon > 0) || !(norm.momentum > 0 && norm.momentum <= 1))
    base::fail(
        base::ErrorKind::usage,
        "batch_norm '{}': epsilon must be above 0 and momentum in (0, 1], but they are {} and {}; PyTorch's "
        "defaults are 1e-5 and 0.1",
        site.name, norm.epsilon, norm.momentum);
  if (norm.init != Init::usual && norm.init != Init::zero)
    base::fail(
        base::ErrorKind::usage,
        "batch_norm '{}': its weight starts as usual (1) or at zero; dirac and whiten are for convolutions: "
        "correct 'init'",
        site.name);
  check_rates(site, norm.rates);
  return site.src[0];
}

std::vector<ParameterRule> parameters(const OpSite& site) {
  const std::int64_t channels = site.src[0].channels;
  const Rates& rates = site.as<BatchNorm>().rates;
  return {{"weight", {channels}, Role::norm_weight, rates.weight},
          {"bias", {channels}, Role::norm_bias, rates.bias},
          {"running_mean", {channels}, Role::running_mean},
          {"running_var", {channels}, Role::running_var}};
}

std::string attributes(const Attributes& op) {
  const auto& own = std::get<BatchNorm>(op);
  return fmt::format("epsilon {}, momentum {}", own.epsilon, own.momentum);
}

}  // namespace

OpRule make_rule(const BatchNorm&) {
  return {.kind = "batch_norm",
          .saved = {.src = true, .statistics = true},
          .in_place = true,
          .attributes = attributes,
          .shape = shape,
          .parameters = parameters};
}

}  // namespace paceline::graph
