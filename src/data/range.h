#pragma once

/// How values of 16 bits become the 8 bits that are trained on: the option `range` of a data spec.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace paceline::data {

/// `range=own` or `range=LOW:HIGH`.
struct Range {
  /// The values that become 0 and 255; nullopt: each image's own smallest and largest value.
  std::optional<std::pair<int, int>> fixed;
  bool operator==(const Range&) const = default;
};

/// "own" or "0:4095"; nullopt for another text.
[[nodiscard]] std::optional<Range> range_named(std::string_view text);
/// The text of a range, as range_named() reads it.
[[nodiscard]] std::string text_of(const Range& range);

/// Scales `values` so that the low end of `range` becomes 0 and the high end 255, rounded; values outside
/// become these. An image of one value becomes 0.
void scale_to_8_bits(std::span<const std::uint16_t> values, const Range& range, std::span<std::uint8_t> dst);

}  // namespace paceline::data
