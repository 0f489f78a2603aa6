#include "data/dataset.h"

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

}  // namespace paceline::data
