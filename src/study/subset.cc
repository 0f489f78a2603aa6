#include "study/subset.h"

#include <algorithm>

namespace paceline::study {

std::vector<PlannedCell> subset(const std::vector<PlannedCell>& cells,
                                const std::vector<std::size_t>& places) {
  std::vector<PlannedCell> some;
  some.reserve(places.size());
  for (const std::size_t place : places) some.push_back(cells[place]);
  return some;
}

std::vector<measure::Record> run_subset(const std::vector<PlannedCell>& cells,
                                        const std::vector<std::size_t>& places, const Runner& runner) {
  Runner one = runner;
  const auto place_of = [&places](int index) {
    return static_cast<int>(places[static_cast<std::size_t>(index)]);
  };
  if (runner.cell)
    one.cell = [&](int index, int, const std::string& id, Begin how) {
      runner.cell(place_of(index), static_cast<int>(cells.size()), id, how);
    };
  if (runner.together)
    one.together->begin = [&](int index, bool resumed) { runner.together->begin(place_of(index), resumed); };
  return run_cells(subset(cells, places), one);
}

bool was_stopped(const std::vector<measure::Record>& records) {
  return std::any_of(records.begin(), records.end(),
                     [](const measure::Record& record) { return record.status == "interrupted"; });
}

}  // namespace paceline::study
