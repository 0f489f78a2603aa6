#include "data/dataset.h"

#include <algorithm>

#include "base/error.h"

namespace paceline::data {

std::int32_t Dataset::read_part(std::int64_t, const ChooseBox&, std::span<std::uint8_t>) const {
  base::expects(false, "only a data set whose images have sizes of their own is read in parts");
  return 0;
}

std::int32_t Dataset::label(std::int64_t index) const {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(format().bytes()));
  return read(index, pixels);
}

std::string Dataset::sample_name(std::int64_t) const { return ""; }

std::int64_t Dataset::stored_bytes(std::int64_t) const { return format().bytes(); }

std::optional<double> mean_stored_bytes(const Dataset& set) {
  constexpr std::int64_t kMost = 256;
  const std::int64_t looked_at = std::min(kMost, set.size());
  if (looked_at == 0) return std::nullopt;
  double sum = 0;
  for (std::int64_t i = 0; i < looked_at; ++i)
    sum += static_cast<double>(set.stored_bytes(i * set.size() / looked_at));
  if (sum == 0) return std::nullopt;
  return sum / static_cast<double>(looked_at);
}

}  // namespace paceline::data
