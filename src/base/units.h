#pragma once

/// Parses texts such as "latency=50us,bandwidth=1GB/s": parts with names, and numbers with units.
///
/// Errors   Error(usage): the end of a sentence that begins with the option's name

#include <array>
#include <functional>
#include <span>
#include <string_view>

namespace paceline::base {

struct Unit {
  std::string_view name;  ///< "" accepts a number without one
  double factor;
};
inline constexpr std::array kSecondUnits{Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"ms", 1e-3},
                                         Unit{"s", 1.0}};
inline constexpr std::array kByteRateUnits{
    Unit{"GB/s", 1e9},      Unit{"MB/s", 1e6},     Unit{"kB/s", 1e3}, Unit{"Gbit/s", 1.25e8},
    Unit{"Mbit/s", 1.25e5}, Unit{"kbit/s", 125.0}, Unit{"B/s", 1.0}};

/// The number times the factor of its unit: finite, and at least 0.
[[nodiscard]] double number_in_units(std::string_view text, std::span<const Unit> units);

/// Calls `take(key, value)` for each part of "key=value,key=value"; `take` returns whether it knows the key.
/// `example`: how the text must be written, for the error.
void each_part(std::string_view text, std::string_view example,
               const std::function<bool(std::string_view key, std::string_view value)>& take);

}  // namespace paceline::base
