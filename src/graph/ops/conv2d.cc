#include <fmt/core.h>

#include "base/error.h"
#include "graph/ops/rules.h"
#include "graph/ops/window.h"

namespace paceline::graph {
namespace {

Shape shape(const OpSite& site) {
  const auto& conv = site.as<Conv2d>();
  if (conv.channels < 1)
    base::fail(base::ErrorKind::usage,
               "conv2d '{}': channels must be at least 1, but is {}; say how many it makes", site.name,
               conv.channels);
  check_rates(site, conv.rates);
  const int most = 2 * site.src[0].channels * conv.kernel * conv.kernel;
  if (conv.init == Init::whiten && (conv.channels % 2 != 0 || conv.channels > most))
    base::fail(
        base::ErrorKind::usage,
        "conv2d '{}': init \"whiten\" makes an even number of channels, at most {} (2 x {} x {} x {}), but "
        "channels is {}; change it",
        site.name, most, site.src[0].channels, conv.kernel, conv.kernel, conv.channels);
  return slide(site, {conv.kernel, conv.stride, conv.padding}, conv.channels);
}

std::vector<ParameterRule> parameters(const OpSite& site) {
  const auto& conv = site.as<Conv2d>();
  std::vector<ParameterRule> rules = {{"weight",
                                       {conv.channels, site.src[0].channels, conv.kernel, conv.kernel},
                                       Role::weight,
                                       conv.rates.weight}};
  if (conv.bias) rules.push_back({"bias", {conv.channels}, Role::bias, conv.rates.bias});
  return rules;
}

std::int64_t multiply_adds(const OpSite& site, const Shape& dst) {
  const auto& conv = site.as<Conv2d>();
  return dst.elements() * site.src[0].channels * conv.kernel * conv.kernel;
}

std::string attributes(const Attributes& op) {
  const auto& own = std::get<Conv2d>(op);
  return fmt::format("channels {}, kernel {}, stride {}, padding {}, bias {}", own.channels, own.kernel,
                     own.stride, own.padding, own.bias);
}

}  // namespace

OpRule make_rule(const Conv2d&) {
  return {.kind = "conv2d",
          .saved = {.src = true},
          .attributes = attributes,
          .shape = shape,
          .parameters = parameters,
          .multiply_adds = multiply_adds};
}

}  // namespace paceline::graph
