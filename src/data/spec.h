#pragma once

/// Parses the text that names a data set, `name[:DIR][,key=value]...`.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace paceline::data {

struct Spec {
  std::string text;       ///< as written
  std::string name;       ///< before ':' and ','
  std::string directory;  ///< after ':', with a leading ~ replaced by $HOME; empty if there is none
  std::map<std::string, std::string> options;
  OpenOptions how = {};  ///< the caller's options, which are not part of the text
};

/// Errors   Error(usage) for an option without '=' or given twice
[[nodiscard]] Spec parse_spec(const std::string& text);

/// Errors   Error(usage), with the nearest known key, when `spec` has an option that is not in `known`
void expect_options(const Spec& spec, std::span<const std::string> known);

/// The option `key` as an integer in [low, high]; `otherwise` if it is not given.
///
/// Errors   Error(usage) naming spec, key, rule and value
[[nodiscard]] std::int64_t integer_option(const Spec& spec, const std::string& key, std::int64_t otherwise,
                                          std::int64_t low, std::int64_t high);

/// The same for a decimal number.
[[nodiscard]] double decimal_option(const Spec& spec, const std::string& key, double otherwise, double low,
                                    double high);

/// The option `key` as `count` decimal numbers in [low, high] joined by ':', "0.49:0.48:0.45", or one number
/// for all; empty if it is not given.
///
/// Errors   Error(usage) as above
[[nodiscard]] std::vector<double> decimals_option(const Spec& spec, const std::string& key, std::size_t count,
                                                  double low, double high);

}  // namespace paceline::data
