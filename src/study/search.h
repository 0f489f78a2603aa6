#pragma once

/// A search over hyper-parameters for the best configuration on the validation set.
///
/// A grid trains all configurations completely. Successive halving trains all for a few epochs, drops of the
/// worse half those that do not tie with the best, and continues the others from their checkpoints for twice
/// as many epochs, until the last epoch. The schedule is that of the whole training from the start, so the
/// last one has the bits of the same training in the grid.
///
/// A search is a study: a stopped one can be continued, and decides alike, since every decision is a pure
/// function of records. The test set is read once, with the chosen configuration. A search over other
/// configurations may continue in the same directory: existing trainings are kept, and a winner whose weights
/// were removed is trained again.
///
/// Source   Jamieson & Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
///          AISTATS 2016

#include <cstdint>
#include <string>
#include <vector>

#include "measure/record.h"
#include "study/study.h"

namespace paceline::study {

/// One configuration.
struct Configuration {
  std::string name;  ///< "lr 0.1, local-batch 64": its difference from the others
  train::Options options;
};

struct Search {
  std::vector<Configuration> configurations;
  SearchOptions how;
};

/// This many configurations are trained up to this many epochs.
struct Rung {
  std::int64_t epochs = 0;
  std::size_t configurations = 0;
};
/// All rungs; the last one has all `epochs`, the first at least one. A grid has one rung. With fewer epochs
/// than halvings the last rung has several configurations. Ties may add to each rung but the first.
[[nodiscard]] std::vector<Rung> rungs(std::size_t configurations, std::int64_t epochs, bool halving);

/// Every training that the search could run: for each rung all configurations with all seeds.
///
/// Errors   Error(usage) for options that no search can have (no whole number of epochs)
[[nodiscard]] std::vector<PlannedCell> search_cells(const Search& search);

/// Runs the rungs of `cells`, which are search_cells(). Returns the records of everything that was run, and
/// at the end the evaluation of the chosen configuration on the test set (kChosen), unless the search was
/// stopped. Otherwise as run_cells().
[[nodiscard]] std::vector<measure::Record> run_search(const Search& search,
                                                      const std::vector<PlannedCell>& cells,
                                                      const Runner& runner);

/// The id of the chosen configuration's evaluation.
inline constexpr const char* kChosen = "search-chosen";

}  // namespace paceline::study
