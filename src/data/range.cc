#include "data/range.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace paceline::data {

std::optional<Range> range_named(std::string_view text) {
  constexpr int kMost = 65535;
  if (text == "own") return Range{};
  const auto colon = std::min(text.find(':'), text.size());
  const auto low = base::to_number<int>(text.substr(0, colon));
  const auto high = base::to_number<int>(text.substr(std::min(colon + 1, text.size())));
  if (!low || !high || *low < 0 || *high <= *low || *high > kMost) return std::nullopt;
  return Range{.fixed = std::pair(*low, *high)};
}

std::string text_of(const Range& range) {
  return range.fixed ? fmt::format("{}:{}", range.fixed->first, range.fixed->second) : "own";
}

void scale_to_8_bits(std::span<const std::uint16_t> values, const Range& range, std::span<std::uint8_t> dst) {
  base::expects(values.size() == dst.size() && !values.empty(), "a byte for each value");
  auto [low, high] = range.fixed.value_or(std::pair(0, 0));
  if (!range.fixed) {
    const auto [least, most] = std::ranges::minmax_element(values);
    low = *least;
    high = *most;
  }
  const int span = std::max(1, high - low);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int above = std::clamp<int>(values[i] - low, 0, span);
    dst[i] = static_cast<std::uint8_t>((2 * 255 * above + span) / (2 * span));
  }
}

}  // namespace paceline::data
