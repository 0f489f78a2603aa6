#pragma once

/// A search over hyper-parameters: which of several configurations is the best on the validation part.
///
/// A grid trains all of them to their end. Successive halving trains all for a few epochs, drops the worse
/// half, and lets the others go on from their checkpoints for twice as many, until one is left; the schedule
/// is that of the whole training from the start, so what is left has the bits of the same training in the
/// grid. Source Jamieson & Talwalkar, "Non-stochastic best arm identification and hyperparameter
/// optimization", AISTATS 2016
///
/// The search is a study: a stopped one goes on, and since every decision is a pure function of records, it
/// decides alike. The test set is read once, by the chosen one. A search of other configurations may go on in
/// the same directory: what is there is kept, and a winner whose weights an earlier one removed is trained
/// again.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/record.h"
#include "study/study.h"

namespace paceline::study {

/// One configuration.
struct Configuration {
  std::string name;  ///< "lr 0.1, local-batch 64": what tells it from the others
  train::Options options;
};

struct Search {
  std::vector<Configuration> configurations;
  SearchOptions how;
};

/// So many configurations are trained until so many epochs lie behind them.
struct Rung {
  std::int64_t epochs = 0;
  std::size_t configurations = 0;
};
/// The last has all `epochs`. A grid has one.
[[nodiscard]] std::vector<Rung> rungs(std::size_t configurations, std::int64_t epochs, bool halving);

/// Every training that the search could run: of each rung all configurations, with all seeds. Errors:
/// Error(usage) for options that no search can have (no whole number of epochs)
[[nodiscard]] std::vector<PlannedCell> search_cells(const Search& search);

/// Runs rung after rung of `cells`, which are search_cells(); returns the records of all that was run, and at
/// the end that of the chosen one on the test set (kChosen). As run_cells() otherwise. Stopped: without that.
[[nodiscard]] std::vector<measure::Record> run_search(const Search& search,
                                                      const std::vector<PlannedCell>& cells,
                                                      const Runner& runner);

/// The id of the chosen one's evaluation.
inline constexpr const char* kChosen = "search-chosen";

}  // namespace paceline::study
