#include <cmath>

#include "analysis/predict/forecast.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

/// Where efficiencies fall below `least` for good, in workers; 0: they never have it.
double crossing(double least, std::span<const std::int64_t> workers, std::span<const double> efficiencies) {
  for (std::size_t n = workers.size(); n-- > 0;) {
    const double here = efficiencies[n];
    if (here < least) continue;
    if (n + 1 == workers.size()) return static_cast<double>(workers.back());
    const double from = std::log2(static_cast<double>(workers[n])),
                 to = std::log2(static_cast<double>(workers[n + 1]));
    return std::exp2(from + (here - least) / (here - efficiencies[n + 1]) * (to - from));
  }
  return 0;
}

}  // namespace

Knee knee_of(double least, std::span<const std::int64_t> workers, std::span<const double> efficiencies,
             std::span<const std::vector<double>> drawn,
             const std::function<double(std::int64_t)>& efficiency_at) {
  Knee knee{.efficiency = least, .workers = {}};
  std::vector<double> crossings;
  for (const auto& one : drawn) crossings.push_back(crossing(least, workers, one));
  knee.low = std::floor(measure::quantile(crossings, kTailPart));
  knee.high = std::floor(measure::quantile(crossings, 1 - kTailPart));
  std::size_t last = workers.size();
  while (last > 0 && efficiencies[last - 1] < least) --last;
  if (last == 0) return knee;
  knee.is_beyond = last == workers.size();
  knee.workers = workers[last - 1];
  if (knee.is_beyond) return knee;
  std::int64_t low = workers[last - 1], high = workers[last];
  while (high - low > 1) {
    const auto between = low + (high - low) / 2;
    (efficiency_at(between) >= least ? low : high) = between;
  }
  knee.workers = low;
  return knee;
}

}  // namespace paceline::analysis
