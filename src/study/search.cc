#include "study/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "measure/statistics.h"
#include "study/settle.h"
#include "train/checkpoint/checkpoint.h"
#include "train/evaluate_checkpoint.h"

namespace paceline::study {
namespace {

namespace fs = std::filesystem;
using measure::Record;

std::int64_t whole_epochs(const Search& search) {
  const double epochs = search.configurations.front().options.epochs;
  if (search.configurations.front().options.steps > 0 || epochs < 1 || epochs != std::floor(epochs))
    train::refuse_options(
        "search: --epochs must be a whole number of at least 1, but is {:g}: configurations are compared "
        "after whole epochs",
        epochs);
  return static_cast<std::int64_t>(epochs);
}

train::Options as_searched(const Configuration& configuration, int seed, std::int64_t pause) {
  train::Options options = configuration.options;
  options.window_steps = 0;
  options.test_set = train::TestSet::never;  // only the chosen configuration reads it
  options.evaluate_every = 1;
  options.seed += static_cast<std::uint64_t>(seed);
  options.pause_after_epochs = pause;
  return options;
}

std::vector<measure::Candidate> ranked_candidates(const std::vector<Record>& records) {
  std::vector<const Record*> pointers;
  for (const Record& record : records) pointers.push_back(&record);
  auto ranked = measure::candidates(pointers);
  measure::rank(ranked);
  return ranked;
}

/// What a rung decides.
struct Survivors {
  std::set<std::string> names;
  std::string why;  ///< lines for the user: who was dropped, and who was kept only because of a tie
};

constexpr std::size_t kListed = 8;

/// "a 40.0 %, b 30.0 %, and 3 more"
std::string listed_with_accuracy(const std::vector<const measure::Candidate*>& some) {
  std::string text;
  for (std::size_t i = 0; i < some.size() && i < kListed; ++i)
    text += fmt::format(
        "{}{} {}", i == 0 ? "" : "; ", some[i]->name,
        some[i]->failure.empty() ? fmt::format("{:.1f} %", 100 * some[i]->accuracy) : std::string("failed"));
  if (some.size() > kListed) text += fmt::format("; and {} more", some.size() - kListed);
  return text;
}

/// Keeps the best `count` configurations, and those that tie with the best; never one without a figure.
Survivors survivors(const std::vector<Record>& records, std::size_t count, std::int64_t epochs) {
  const auto ranked = ranked_candidates(records);
  Survivors result;
  std::vector<const measure::Candidate*> dropped, tied;
  const std::int64_t samples = records.front().data.validation_samples.value_or(0);
  for (const auto& candidate : ranked) {
    const bool has_figure = candidate.failure.empty();
    const bool is_of_better_half = has_figure && result.names.size() - tied.size() < count;
    const bool ties = has_figure && !is_of_better_half && samples > 0 &&
                      measure::ties_with(ranked.front(), candidate, samples);
    if (ties) tied.push_back(&candidate);
    if (is_of_better_half || ties)
      result.names.insert(candidate.name);
    else
      dropped.push_back(&candidate);
  }
  if (!dropped.empty())
    result.why = fmt::format(
        "dropped after epoch {}, of the worse half and below the best ({:.1f} %) by more than noise: {}\n  ",
        epochs, 100 * ranked.front().accuracy, listed_with_accuracy(dropped));
  if (!tied.empty())
    result.why += fmt::format("kept from the worse half, since they tie with the best: {}\n  ",
                              listed_with_accuracy(tied));
  return result;
}

/// Removes the trainings of dropped configurations: they take disk space and are never continued.
void remove_trainings(const Runner& runner, const std::vector<PlannedCell>& cells,
                      const std::set<std::string>& kept) {
  for (const auto& cell : cells)
    if (!kept.contains(cell.variant))
      if (const auto folder = training_directory(runner, cell); !folder.empty()) fs::remove_all(folder);
}

const PlannedCell& cell_of(const std::vector<PlannedCell>& cells, const Record& record) {
  return *std::ranges::find(cells, record.id, &PlannedCell::id);
}

/// The best candidate's best training, in `records`.
Record* chosen_of(std::vector<Record>& records) {
  const auto ranked = ranked_candidates(records);
  if (ranked.empty() || !ranked.front().failure.empty()) return nullptr;
  const Record* const best = &measure::best_record(ranked.front());
  return &records[static_cast<std::size_t>(best - records.data())];
}

/// The weights of its best epoch on validation.
fs::path weights_of(const std::vector<PlannedCell>& cells, const Record& chosen, const Runner& runner) {
  return train::best_checkpoint_path(training_directory(runner, cell_of(cells, chosen)),
                                     measure::best_validated(chosen)->updates);
}

/// A search keeps the weights of its winner only. If a later search in the same directory, with other
/// configurations or seeds, chooses another winner, that one is trained again: same settings, same bits.
void train_again(const std::vector<PlannedCell>& cells, Record& chosen, const Runner& runner) {
  const PlannedCell& cell = cell_of(cells, chosen);
  const auto place = static_cast<std::size_t>(&cell - cells.data());
  fs::remove(record_path(runner, cell.id));
  fs::remove_all(training_directory(runner, cell));
  Runner one = runner;
  if (runner.cell)
    one.cell = [&](int index, int all, const std::string& id, Begin) {
      runner.cell(index, all, id, Begin::again);
    };
  chosen = std::move(run_subset(cells, {place}, one).front());
  if (chosen.status != "complete") return;
  chosen.notes.push_back(
      "trained again: an earlier search in this directory chose another configuration and kept only the weights of "
      "that one");
  measure::write_record(record_path(runner, cell.id), chosen);
}

/// The test-set evaluation that an earlier call of the search in this directory left behind; nullopt if there
/// is none.
std::optional<Record> read_before(const fs::path& path) {
  return fs::exists(path) ? std::optional(measure::read_record(path)) : std::nullopt;
}

/// Whether `before` is the complete evaluation of the chosen weights, so that nothing has to be read.
bool is_of(const std::optional<Record>& before, const fs::path& weights) {
  return before && before->evaluation && before->evaluation->checkpoint == weights.string();
}

/// Test images that it read. An evaluation that was killed half-way counts in full.
std::int64_t reads_of(const std::optional<Record>& before) {
  if (!before) return 0;
  if (before->evaluation) return before->evaluation->reads;
  return before->test_set ? before->test_set->reads : 0;
}

/// The record that remains if the evaluation does not finish. It says that the test set was read.
Record begun_evaluation(const Record& chosen, std::int64_t reads) {
  Record record;
  record.kind = "evaluate";
  record.id = kChosen;
  record.variant = chosen.variant;
  record.status = "interrupted";
  record.reason = "the test set was not read to its end";
  record.created = measure::utc_now();
  record.command = chosen.command;
  record.settings = chosen.settings;
  record.environment = chosen.environment;
  record.model = chosen.model;
  record.data = chosen.data;
  record.test_set = measure::TestSetRecord{.policy = "last", .reads = reads};
  return record;
}

/// Evaluates the chosen configuration on the test set, which nothing else in a search reads. Reads by an
/// earlier call of the same search are kept and counted.
std::optional<Record> evaluate_chosen(const std::vector<PlannedCell>& cells, const Record& chosen,
                                      const Runner& runner) {
  const PlannedCell& cell = cell_of(cells, chosen);
  train::EvaluationRequest request;
  request.checkpoint = weights_of(cells, chosen, runner);
  const auto path = record_path(runner, kChosen);
  const auto before = read_before(path);
  if (is_of(before, request.checkpoint)) return before;
  if (runner.stop.stop_requested()) return std::nullopt;
  train::Options options = cell.options;
  options.workers = 1;
  options.local_batch = chosen.local_batch;
  options.global_batch = 0;
  options.precision = chosen.precision;
  options.command = runner.command;
  measure::write_record(path, begun_evaluation(chosen, reads_of(before) + chosen.data.test_samples));
  auto record = train::evaluate_checkpoint(options, request, runner.backend, runner.stop, {});
  if (!record.evaluation) return std::nullopt;
  record.id = kChosen;
  record.variant = chosen.variant;
  record.evaluation->reads += reads_of(before);
  if (!runner.note.empty()) record.notes.push_back(runner.note);
  measure::write_record(path, record);
  return record;
}

}  // namespace

std::vector<Rung> rungs(std::size_t configurations, std::int64_t epochs, bool halving) {
  if (!halving) return {{epochs, configurations}};
  // Each rung halves at most once: with fewer epochs than halvings the search ends earlier, with several.
  std::vector<Rung> all;
  std::vector<std::int64_t> lengths{epochs};
  for (std::size_t left = configurations; left > 1 && lengths.back() > 1; left = (left + 1) / 2)
    lengths.push_back(
        std::llround(std::ldexp(static_cast<double>(epochs), -static_cast<int>(lengths.size()))));
  for (auto length = lengths.rbegin(); length != lengths.rend(); ++length) {
    all.push_back({*length, configurations});
    configurations = (configurations + 1) / 2;
  }
  return all;
}

std::vector<PlannedCell> search_cells(const Search& search) {
  const auto epochs = whole_epochs(search);
  std::vector<PlannedCell> cells;
  const auto all = rungs(search.configurations.size(), epochs, search.how.halving);
  std::set<std::string> folders;
  for (std::size_t rung = 0; rung < all.size(); ++rung)
    for (int seed = 0; seed < search.how.seeds; ++seed)
      for (const auto& configuration : search.configurations) {
        // "lr 0.1, bn sync" is "lr-0.1-bn-sync".
        const auto folder = fmt::format("search-{}-r{}", file_part(configuration.name, "._"), seed);
        const bool pauses = all[rung].epochs < epochs;
        PlannedCell cell{.id = fmt::format("{}-e{}", folder, all[rung].epochs),
                         .kind = "search",
                         .variant = configuration.name,
                         .repeat = seed,
                         .options = as_searched(configuration, seed, pauses ? all[rung].epochs : 0)};
        cell.training = folder;
        cell.keeps_training = true;
        cell.chance =
            static_cast<double>(all[rung].configurations) / static_cast<double>(search.configurations.size());
        if (all.size() > 1)
          cell.stage = fmt::format("rung {} of {}: epoch {}", rung + 1, all.size(), all[rung].epochs);
        if (rung == 0 && !folders.insert(folder).second)
          train::refuse_options("search: two configurations are called '{}'; give each value once",
                                configuration.name);
        cells.push_back(std::move(cell));
      }
  return cells;
}

std::vector<Record> run_search(const Search& search, const std::vector<PlannedCell>& cells,
                               const Runner& runner) {
  const auto all = rungs(search.configurations.size(), whole_epochs(search), search.how.halving);
  const std::size_t each = cells.size() / all.size();
  Survivors alive;
  for (const auto& configuration : search.configurations) alive.names.insert(configuration.name);
  std::vector<Record> records;
  for (std::size_t rung = 0; rung < all.size(); ++rung) {
    std::vector<std::size_t> places;
    for (std::size_t i = rung * each; i < (rung + 1) * each; ++i)
      if (alive.names.contains(cells[i].variant)) places.push_back(i);
    if (places.empty()) break;  // all have failed
    if (runner.chosen)
      runner.chosen(places,
                    fmt::format("{}{}{} trainings", alive.why,
                                all.size() > 1 ? cells[rung * each].stage + ", " : "", places.size()));
    auto ran = run_subset(cells, places, runner);
    const bool stopped = was_stopped(ran);
    const bool is_last = rung + 1 == all.size();
    if (!stopped && !is_last) {
      alive = survivors(ran, all[rung + 1].configurations, all[rung].epochs);
      remove_trainings(runner, subset(cells, places), alive.names);
    }
    records.insert(records.end(), std::make_move_iterator(ran.begin()), std::make_move_iterator(ran.end()));
    if (stopped) return records;
  }
  Record* const chosen = runner.directory.empty() ? nullptr : chosen_of(records);
  if (chosen == nullptr) return records;
  const auto weights = weights_of(cells, *chosen, runner);
  if (!fs::exists(weights) && !is_of(read_before(record_path(runner, kChosen)), weights))
    train_again(cells, *chosen, runner);
  if (chosen->status != "complete") return records;  // stopped
  if (auto evaluated = evaluate_chosen(cells, *chosen, runner)) {
    remove_trainings(runner, cells, {evaluated->variant});
    records.push_back(std::move(*evaluated));
  }
  return records;
}

}  // namespace paceline::study
