#include "analysis/steps/collectives.h"

#include <algorithm>

namespace paceline::analysis {

double bus_factor(std::string_view collective, int ranks) {
  if (ranks < 2) return 0;
  if (collective == "broadcast") return 1;
  return (collective == "all_reduce" ? 2.0 : 1.0) * (ranks - 1) / ranks;
}

CollectiveFigures figures(const measure::CollectiveRecord& one, int ranks) {
  CollectiveFigures result{.seconds = measure::estimate(one.seconds), .algbw = {}, .busbw = {}};
  const auto& t = result.seconds;
  if (ranks < 2 || !(t.low > 0)) return result;
  const auto rates = [&](double bytes) {  // the shortest time is the highest rate
    return measure::Estimate{
        .median = bytes / t.median / 1e9, .low = bytes / t.high / 1e9, .high = bytes / t.low / 1e9, .n = t.n};
  };
  const auto bytes = static_cast<double>(one.bytes);
  result.algbw = rates(bytes);
  result.busbw = rates(bytes * bus_factor(one.collective, ranks));
  return result;
}

bool shows_bandwidth(const measure::LinkFitRecord& fit, const measure::Record& record) {
  if (record.workers < 2 || !(fit.bytes_per_s > 0) || !record.collectives) return false;
  std::int64_t largest = 0;
  for (const auto& one : *record.collectives)
    if (one.collective == fit.collective && one.in_place == fit.in_place)
      largest = std::max(largest, one.bytes);
  const double transfer = static_cast<double>(largest) / fit.bytes_per_s;
  return transfer >= 0.05 * (fit.alpha_s + transfer);
}

}  // namespace paceline::analysis
