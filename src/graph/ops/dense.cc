#include <fmt/core.h>

#include "base/error.h"
#include "graph/ops/rules.h"

namespace paceline::graph {
namespace {

Shape shape(const OpSite& site) {
  const auto& dense = site.as<Dense>();
  if (dense.features < 1)
    base::fail(base::ErrorKind::usage,
               "dense '{}': features must be at least 1, but is {}; say how many it makes", site.name,
               dense.features);
  check_rates(site, dense.rates);
  if (dense.init != Init::usual && dense.init != Init::zero)
    base::fail(base::ErrorKind::usage,
               "dense '{}': init \"dirac\" and \"whiten\" are for conv2d; leave init out or take \"zero\"",
               site.name);
  return {dense.features, 1, 1};
}

std::vector<ParameterRule> parameters(const OpSite& site) {
  const auto& dense = site.as<Dense>();
  std::vector<ParameterRule> rules = {
      {"weight", {dense.features, site.src[0].elements()}, Role::weight, dense.rates.weight}};
  if (dense.bias) rules.push_back({"bias", {dense.features}, Role::bias, dense.rates.bias});
  return rules;
}

std::int64_t multiply_adds(const OpSite& site, const Shape& dst) {
  return dst.channels * site.src[0].elements();
}

std::string attributes(const Attributes& op) {
  const auto& own = std::get<Dense>(op);
  return fmt::format("features {}, bias {}", own.features, own.bias);
}

}  // namespace

OpRule make_rule(const Dense&) {
  return {.kind = "dense",
          .saved = {.src = true},
          .attributes = attributes,
          .shape = shape,
          .parameters = parameters,
          .multiply_adds = multiply_adds};
}

}  // namespace paceline::graph
