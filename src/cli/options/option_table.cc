/// The table of options as a whole, in the order in which values are set.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "cli/options/option_rows.h"
#include "comm/emulate.h"

namespace paceline::cli {
namespace {

using train::Placement;

std::vector<Placement> placements_of(std::string_view text) {
  if (text == "packed") return {Placement::packed};
  if (text == "spread") return {Placement::spread};
  if (text == "both" || text == "packed,spread") return {Placement::packed, Placement::spread};
  base::fail(ErrorKind::usage, "must be packed, spread or both, got '{}'", text);
}

void choose_worker_list(Settings& settings, std::string_view text) {
  settings.study.scale.workers.clear();
  for (const auto count : whole_numbers(text, 1, kManyWorkers))
    settings.study.scale.workers.push_back(static_cast<int>(count));
}

/// Options of a training that these commands read in a way of their own: a study takes more of them, and
/// train does not know the forms of emulations.
struct OfCommands {
  Setting setting;
  unsigned commands;
  Field<S> field;
};
template <auto Member, auto parse>
constexpr Field<S> emulation() {
  return Field<S>(
      [](S& s, Text t) {
        (void)parse(t);
        s.train.*Member = t;
      },
      [](const S& s) { return s.train.*Member; });
}

constexpr OfCommands kOfCommands[] = {
    {"workers", kConverge,
     Field<S>(
         [](S& s, Text t) {
           choose_worker_list(s, t);
           s.train.workers = s.study.scale.workers.front();
         },
         [](const S& s) { return std::to_string(s.train.workers); })},
    {"workers", kScale | kStudy,
     Field<S>([](S& s, Text t) { choose_worker_list(s, t); },
              [](const S& s) { return fmt::format("{}", fmt::join(s.study.scale.workers, ",")); })},
    {"warmup", kRuns,
     Field<S>(
         [](S& s, Text t) { s.train.schedule.warmup_epochs = s.study.converge.warmup_epochs = decimal(t); },
         [](const S& s) {
           if (s.command != kConverge) return base::as_text(s.train.schedule.warmup_epochs);
           const double epochs = s.study.converge.warmup_epochs;
           return epochs < 0 ? std::string() : base::as_text(epochs);
         })},
    {"emulate-link", kTrain | kScale | kComm, emulation<&train::Options::emulate_link, comm::parse_link>()},
    {"emulate-straggler", kTrain | kScale | kComm,
     emulation<&train::Options::emulate_straggler, comm::parse_straggler>()},
    {"emulate-compute", kTrain | kScale,
     Field<S>([](S& s, Text t) { s.train.emulate_compute = emulated_phases(t); },
              [](const S& s) { return s.train.emulate_compute; })},
    {"placement", kRuns,
     Field<S>(
         [](S& s, Text t) {
           s.study.placements = placements_of(t);
           s.train.placement = s.study.placements.front();
         },
         [](const S& s) {
           if (s.study.placements.size() > 1) return "both";
           return s.study.placements.front() == Placement::packed ? "packed" : "spread";
         })},
};

Option option_of(const Row& row) {
  return {row.setting, row.value, row.group, row.help, row.commands, row.rules, &row.field, nullptr};
}

Option option_of(const train::OptionRow<train::Options>& row) {
  const auto found = std::ranges::find_if(kOfCommands, [&](const OfCommands& one) {
    return one.setting == row.setting && (one.commands & row.commands) != 0;
  });
  const auto* const of_settings = found == std::end(kOfCommands) ? nullptr : &found->field;
  return {row.setting, row.value, row.group, row.help, row.commands, row.rules, of_settings, &row.field};
}

}  // namespace

const std::vector<Option>& options() {
  static const std::vector<Option> table = [] {
    std::vector<Option> joined;
    const auto add = [&](auto rows) {
      for (const auto& row : rows) joined.push_back(option_of(row));
    };
    add(train::training_rows());
    add(train::rule_rows());
    add(comm_rows());
    add(train::link_rows());
    add(launch_rows());
    add(cell_rows());
    add(train::window_rows());
    add(study_rows());
    add(predict_rows());
    add(target_rows());
    return joined;
  }();
  return table;
}

}  // namespace paceline::cli
