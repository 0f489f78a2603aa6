#include "analysis/cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "analysis/consistency.h"

namespace paceline::analysis {
namespace {

using measure::Record;

bool is_release(const std::string& build) { return build == "Release" || build == "RelWithDebInfo"; }

/// Whether its figures may be used: one that contradicts itself stands in the tables without any.
bool is_measured(const Record& record) {
  if (contradiction(record)) return false;
  return (record.status == "complete" || record.status == "interrupted") && !record.ranks.empty() &&
         record.window.steps > 0 && !record.ranks.front().step_s.empty();
}

/// Why nothing of a record that is not measured stands in its cell.
std::string reason_of(const Record& record) {
  if (const auto wrong = contradiction(record)) return "its record contradicts itself: " + *wrong;
  return record.reason;
}

/// What was asked apart from the precision.
std::string configuration(const Record& record) {
  std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", record.kind, record.scaling, record.variant, record.workers,
                  record.local_batch, record.global_batch, record.model.name, record.data.spec);
  for (const auto& [name, value] : record.settings)
    if (!is_of_window(name) && name != "precision") key += fmt::format("|{}={}", name, value);
  return key;
}

/// What was asked: known of every record, run or not.
std::string asked(const Record& record) {
  const auto precision = record.settings.find("precision");
  return configuration(record) + (precision == record.settings.end() ? "" : "|" + precision->second);
}

/// What resumes did otherwise than the run before them, for a key or a label; the settings of the record are
/// those of its last part.
std::string changes_at_resumes(const Record& record) {
  std::vector<std::string> texts;
  for (const auto& change : record.changes.value_or(std::vector<measure::ChangeRecord>()))
    texts.push_back(fmt::format("update {}: {} was {}", change.update, change.setting,
                                change.then.value_or("not given")));
  return texts.empty() ? "" : fmt::format("({})", fmt::join(texts, "; "));
}

/// And what it was run on and as; the precision is the one that "auto" came to.
std::string measured_key(const Record& record) {
  const auto& machine = record.environment;
  std::string key = configuration(record) + changes_at_resumes(record);
  for (const auto& [name, value] : circumstances(record)) key += fmt::format("|{}={}", name, value);
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", key, machine.cpu, machine.cores, machine.build,
                     record.threads_per_worker, record.precision, record.device, record.window.unit,
                     record.model.parameters, record.model.training_flops);
}

/// Whether nothing that is known of its circumstances is otherwise there: of what was not run less is known.
bool may_be_of(const Record& record, const Cell& cell) {
  const auto there = circumstances(cell.record());
  const auto here = circumstances(record);
  return std::all_of(here.begin(), here.end(), [&](const auto& one) {
    const auto found = there.find(one.first);
    return found == there.end() || found->second == one.second;
  });
}

Cell begin_cell(const Record& record) {
  Cell cell;
  cell.kind = record.kind;
  cell.scaling = record.scaling;
  cell.variant = record.variant;
  cell.label = record.local_batch * record.workers == record.global_batch
                   ? fmt::format("b {}, N {}", record.local_batch, record.workers)
                   : fmt::format("B {}, N {}", record.global_batch, record.workers);
  cell.workers = record.workers;
  cell.threads_per_worker = record.threads_per_worker;
  cell.local_batch = record.local_batch;
  cell.global_batch = record.global_batch;
  cell.debug_build = !record.environment.build.empty() && !is_release(record.environment.build);
  cell.synthetic = record.data.synthetic;
  cell.emulated = emulated(record);
  cell.status = record.status;
  cell.reason = record.reason;
  cell.steps_per_epoch = record.data.steps_per_epoch;
  cell.train_samples = record.data.train_samples;
  if (contradiction(record)) {
    cell.status = "left out";
    cell.reason = reason_of(record);
  }
  return cell;
}

void finish(Cell& cell) {
  std::vector<std::vector<double>> steps;
  std::vector<std::vector<double>> epochs;
  std::size_t whole_epochs = 0;
  for (const Record* record : cell.records) {
    cell.oversubscribed = cell.oversubscribed || record->oversubscribed;
    if (!is_measured(*record)) continue;
    steps.push_back(step_seconds(*record));
    cell.steps_measured += static_cast<std::int64_t>(steps.back().size());
    epochs.push_back(epoch_seconds(*record));
    whole_epochs += epochs.back().size();
  }
  if (steps.empty()) return;
  cell.step_s = pooled(steps);
  cell.images_per_s = over(static_cast<double>(cell.global_batch), cell.step_s);
  cell.epoch_measured = whole_epochs > 0;
  if (cell.epoch_measured) {
    const double all_images = cell.full_steps() / static_cast<double>(cell.steps_per_epoch);
    cell.epoch_s = scaled(pooled(epochs), all_images);
    cell.epoch_basis =
        whole_epochs == 1 ? "one measured epoch" : fmt::format("median of {} epochs", whole_epochs);
  } else {
    cell.epoch_s = scaled(cell.step_s, cell.full_steps());
    cell.epoch_basis = fmt::format("from {} steps", cell.steps_measured);
  }
}

/// A window of exactly one epoch, timed as a whole: its wall time without what is no training, which is the
/// ledger's mean over ranks.
std::optional<double> window_as_epoch(const Record& record) {
  if (record.ranks.empty() || record.data.steps_per_epoch <= 0) return std::nullopt;
  if (record.window.steps != record.data.steps_per_epoch) return std::nullopt;
  using measure::Phase;
  double outside = 0;
  for (const auto& rank : record.ranks)
    for (const Phase phase : {Phase::evaluation, Phase::checkpoint})
      outside += rank.phases[static_cast<std::size_t>(phase)] / static_cast<double>(record.ranks.size());
  return record.window.wall_s - outside;
}

/// Of what was not run the libraries are not known, which tells it from nothing.
bool is_in_every_record(std::string_view circumstance) {
  return circumstance == "version" || circumstance == "host";
}

/// Those of circumstances() that tell the cells apart, no more: another version mostly comes with other
/// libraries, and its name says enough.
std::vector<std::map<std::string, std::string>> telling_circumstances(const std::vector<const Cell*>& cells) {
  using Circumstances = std::map<std::string, std::string>;
  std::vector<Circumstances> whole, told(cells.size());
  for (const Cell* cell : cells) whole.push_back(circumstances(cell->record()));
  const auto kinds = [](const std::vector<Circumstances>& all) {
    return std::set<Circumstances>(all.begin(), all.end()).size();
  };
  for (const char* name : {"version", "host", "libraries", "compiler", "system"}) {
    auto more = told;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto found = whole[i].find(name);
      if (found != whole[i].end())
        more[i].insert(*found);
      else if (is_in_every_record(name))
        more[i][name] = "unknown";
    }
    if (kinds(more) > kinds(told)) told = std::move(more);
  }
  return told;
}

/// Cells that only a setting tells apart have it in their labels: else two rows of a table would be called
/// the same.
void tell_apart(std::vector<Cell>& cells) {
  std::map<std::string, std::vector<Cell*>> alike;
  for (Cell& cell : cells)
    alike[fmt::format("{}|{}|{}|{}", cell.kind, cell.scaling, cell.variant, cell.label)].push_back(&cell);
  for (const auto& [label, group] : alike) {
    const auto apart = differences({group.begin(), group.end()});
    for (std::size_t i = 0; i < group.size(); ++i)
      if (!apart[i].empty()) group[i]->label += ", " + apart[i];
  }
}

}  // namespace

bool is_of_window(std::string_view setting) {
  return setting == "seed" || setting == "window-steps" || setting == "window-seconds" ||
         setting == "warmup-steps";
}

std::map<std::string, std::string> circumstances(const Record& record) {
  const auto& there = record.environment;
  std::map<std::string, std::string> all{{"version", there.version},
                                         {"libraries", fmt::format("{}", fmt::join(there.libraries, "; "))},
                                         {"host", there.host},
                                         {"system", there.os},
                                         {"compiler", there.compiler}};
  std::erase_if(all, [](const auto& one) { return one.second.empty(); });
  return all;
}

std::vector<std::string> different_circumstances(const std::vector<const Cell*>& cells) {
  std::vector<std::string> texts;
  for (const auto& here : telling_circumstances(cells)) {
    std::vector<std::string> own;
    for (const auto& [name, value] : here) own.push_back(fmt::format("{} {}", name, value));
    texts.push_back(fmt::format("{}", fmt::join(own, ", ")));
  }
  return texts;
}

std::vector<std::string> told_apart(const std::vector<const Cell*>& cells,
                                    const std::vector<std::pair<std::int64_t, std::int64_t>>& places) {
  const auto do_tell = [&](const std::vector<std::string>& texts) {
    std::set<std::pair<std::pair<std::int64_t, std::int64_t>, std::string>> taken;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (!taken.emplace(places[i], texts[i]).second) return false;
    return true;
  };
  std::vector<std::string> none(cells.size());
  if (do_tell(none)) return none;
  auto texts = different_circumstances(cells);
  return do_tell(texts) ? texts : differences(cells);
}

std::vector<std::string> differences(const std::vector<const Cell*>& cells) {
  static const std::set<std::string> kSaid{"workers", "local-batch", "global-batch", "precision"};
  std::vector<std::map<std::string, std::string>> of_each;
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, std::size_t> settings;  // in how many cells each is set
  const bool is_one_model = std::all_of(cells.begin(), cells.end(), [&](const Cell* cell) {
    return cell->record().model.name == cells.front()->record().model.name;
  });
  const auto telling = telling_circumstances(cells);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Record& record = cells[i]->record();
    auto& here = of_each.emplace_back(telling[i]);
    for (const auto& [name, value] : record.settings)
      if (!kSaid.contains(name) && !is_of_window(name)) here[name] = value;
    here["precision"] = record.precision;  // "auto" has come to one; of a cell that was not run none is known
    if (is_one_model)  // else its name says it: a file of layers may have changed under one name
      for (const auto& [name, number] : {std::pair{"parameters", record.model.parameters},
                                         std::pair{"FLOPs a sample", record.model.training_flops}})
        if (number > 0) here[name] = std::to_string(number);
    const std::string changes = changes_at_resumes(record);
    here["change at a resume"] = changes;
    if (!changes.empty()) ++settings["change at a resume"];
    std::erase_if(here, [](const auto& one) { return one.second.empty(); });
    for (const auto& [name, value] : here) {
      values[name].insert(value);
      if (record.settings.contains(name) && name != "precision") ++settings[name];
    }
  }
  // A setting that some lack says as much as one with several values; what is not known of a cell does not.
  const auto is_lacked = [&](const std::string& name) {
    const auto found = settings.find(name);
    return found != settings.end() && found->second < cells.size();
  };
  std::vector<std::string> texts;
  for (const auto& here : of_each) {
    std::vector<std::string> own;
    for (const auto& [name, value] : here)
      if (values[name].size() > 1 || is_lacked(name)) own.push_back(fmt::format("{} {}", name, value));
    if (own.empty())
      for (const auto& [name, number] : settings)
        if (is_lacked(name) && !here.contains(name)) own.push_back("no " + name);
    texts.push_back(fmt::format("{}", fmt::join(own, ", ")));
  }
  return texts;
}

std::string emulated(const Record& record) {
  static constexpr std::string_view kMark = " EMULATED ";
  std::vector<std::string> parts;
  for (const std::string* text : {&record.communication.communicator, &record.data.description})
    for (auto at = text->find(kMark); at != std::string::npos;) {
      const auto begin = at + kMark.size();
      at = text->find(kMark, begin);
      auto part = text->substr(begin, at == std::string::npos ? at : at - begin);
      if (part.ends_with(" +")) part.resize(part.size() - 2);
      parts.push_back(std::move(part));
    }
  if (parts.empty() && record.ranks.empty() && record.workers > 1)  // not run: what was asked for
    for (const char* option : {"emulate-link", "emulate-straggler"})
      if (const auto asked = record.settings.find(option); asked != record.settings.end())
        parts.push_back(fmt::format("{} {}", option + sizeof("emulate-") - 1, asked->second));
  return fmt::format("{}", fmt::join(parts, "; "));
}

double Cell::full_steps() const {
  if (train_samples <= 0 || global_batch <= 0) return static_cast<double>(steps_per_epoch);
  return static_cast<double>(train_samples) / static_cast<double>(global_batch);
}

std::vector<double> step_seconds(const Record& record) {
  if (record.ranks.empty()) return {};
  std::size_t steps = record.ranks.front().step_s.size();
  for (const auto& rank : record.ranks) steps = std::min(steps, rank.step_s.size());
  std::vector<double> mean(steps, 0.0);
  for (const auto& rank : record.ranks)
    for (std::size_t i = 0; i < steps; ++i)
      mean[i] += rank.step_s[i] / static_cast<double>(record.ranks.size());
  return mean;
}

std::vector<double> epoch_seconds(const Record& record) {
  std::vector<double> seconds;
  if (record.window.unit != "epoch") return seconds;
  std::int64_t before = 0;
  for (const auto& epoch : record.epochs) {
    const std::int64_t steps = epoch.steps.value_or(epoch.updates - before);
    if (steps == record.data.steps_per_epoch) seconds.push_back(epoch.seconds);
    before = epoch.updates;
  }
  if (record.epochs.empty())
    if (const auto window = window_as_epoch(record)) seconds.push_back(*window);
  return seconds;
}

std::vector<double> seconds_to_epochs(const Record& record) {
  std::vector<double> ends;
  double seconds = 0;
  std::int64_t before = 0;
  for (const auto& epoch : record.epochs) {
    if (epoch.steps.value_or(epoch.updates - before) != epoch.updates - before) return {};
    seconds += epoch.seconds;
    ends.push_back(seconds);
    before = epoch.updates;
  }
  return ends;
}

double epochs_done(const Record& record, const measure::EpochRecord& epoch) {
  if (record.data.steps_per_epoch <= 0) return static_cast<double>(epoch.epoch);
  return static_cast<double>(epoch.updates) / static_cast<double>(record.data.steps_per_epoch);
}

int cores_used(const Record& record) {
  const int threads = record.workers * record.threads_per_worker;
  std::set<std::pair<std::string, int>> pinned;
  std::set<std::string> hosts;
  bool all_pinned = !record.ranks.empty();
  for (const auto& rank : record.ranks) {
    hosts.insert(rank.host.value_or(""));
    all_pinned &= !rank.cores.empty();
    for (const int core : rank.cores) pinned.emplace(rank.host.value_or(""), core);
  }
  if (all_pinned) return std::min(static_cast<int>(pinned.size()), threads);
  const int there = record.environment.cores * std::max(1, static_cast<int>(hosts.size()));
  return there > 0 ? std::min(there, threads) : threads;
}

std::vector<Cell> make_cells(std::span<const Record> records) {
  std::vector<Cell> cells;
  std::map<std::string, std::size_t> by_key;
  std::map<std::string, std::vector<std::size_t>> by_asked;
  const auto is_of_collectives = [](const Record& record) { return record.kind == "comm"; };  // collectives.h
  for (const Record& record : records) {
    if (is_of_collectives(record) || !is_measured(record)) continue;
    const auto [found, is_new] = by_key.try_emplace(measured_key(record), cells.size());
    if (is_new) {
      by_asked[asked(record)].push_back(cells.size());
      cells.push_back(begin_cell(record));
    }
    Cell& cell = cells[found->second];
    if (record.status == "complete") {
      cell.status = record.status;
      cell.reason.clear();
    }
    cell.records.push_back(&record);
  }
  // What was not measured stands beside what was, of several versions beside its own. What failed, or
  // contradicts itself, in circumstances in which nothing was measured is no repeat of what others did.
  const auto cell_of_unmeasured = [&](const Record& record) -> Cell& {
    auto& alike = by_asked[asked(record)];
    const auto own = std::find_if(alike.begin(), alike.end(),
                                  [&](std::size_t at) { return may_be_of(record, cells[at]); });
    if (own != alike.end()) return cells[*own];
    const bool is_not_run = record.status == "skipped" || record.status == "interrupted";
    if (!alike.empty() && is_not_run) return cells[alike.front()];
    alike.push_back(cells.size());
    cells.push_back(begin_cell(record));
    cells.back().records.push_back(&record);
    return cells.back();
  };
  for (const Record& record : records) {
    if (is_of_collectives(record) || is_measured(record)) continue;
    Cell& cell = cell_of_unmeasured(record);
    if (!is_measured(*cell.records.front())) continue;
    const std::string reason = reason_of(record);
    cell.lost_repeats.push_back(reason.empty() ? record.status : reason);
    if (record.status == "failed" && !record.loss) cell.failed_repeats.push_back(&record);
  }
  for (Cell& cell : cells) finish(cell);
  tell_apart(cells);
  // Cells that were not run stand where their records did.
  std::stable_sort(cells.begin(), cells.end(),
                   [](const Cell& a, const Cell& b) { return a.records.front() < b.records.front(); });
  return cells;
}

}  // namespace paceline::analysis
