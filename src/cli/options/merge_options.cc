#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/options/options.h"
#include "cli/options/recipe.h"
#include "measure/setting.h"
#include "train/given/option_rows.h"

namespace paceline::cli {

namespace {

using measure::Setting;

/// The given options that have no effect beside the others of one training, unless they were given as off.
/// For commands whose trainings set options themselves (converge, study), some may have an effect after all.
std::vector<const Option*> unread_options(const Settings& settings) {
  std::vector<const Option*> unread;
  for (const auto& option : options()) {
    const auto& rule = option.rules.read_if;
    if (!(option.commands & settings.command) || !settings.is_given(option.setting) ||
        rule.holds(settings.train))
      continue;
    const bool is_off = rule.leaves_records_if_unread() && option.of_training->text(settings.train).empty();
    if (!is_off) unread.push_back(&option);
  }
  return unread;
}

/// Joins the layers: keeps the last text of every option, and of two rivals the one in the later layer.
std::vector<Assignment> join(const std::vector<std::vector<Assignment>>& layers) {
  std::vector<Assignment> joined;
  for (const auto& layer : layers) {
    for (const auto& given : layer) {
      for (const auto& other : layer)
        if (other.option == given.option && other.text != given.text)
          base::fail(ErrorKind::usage, "{} and {} contradict each other; give one of them", given.where,
                     other.where);
      for (const auto& other : layer)
        if (given.option->rules.rival == other.option->setting)
          base::fail(ErrorKind::usage,
                     "{} {} and {} {} are both given, and one follows from the other; give one of them",
                     given.where, given.text, other.where, other.text);
    }
    for (const auto& given : layer) {
      std::erase_if(joined, [&](const Assignment& earlier) {
        return earlier.option == given.option || given.option->rules.rival == earlier.option->setting;
      });
      joined.push_back(given);
    }
  }
  return joined;
}

/// Sets values in the table's order: the optimizer sets its default lr, which an explicit --lr then replaces.
void take_values(Settings& settings, const std::vector<Assignment>& joined) {
  for (const auto& option : options()) {
    for (const auto& given : joined) {
      if (given.option != &option) continue;
      try {
        if (given.text.empty()) base::fail(ErrorKind::usage, "must not be empty");
        option.set(settings, given.text);
      } catch (const base::Error& error) {
        throw base::Error(error.kind(), given.where + " " + error.what());
      }
      settings.given.push_back(option.setting);
      settings.origins.push_back(given.where);
    }
  }
}

constexpr double kSearchEpochs = 4;

void take_defaults(Settings& settings) {
  auto& train = settings.train;
  if (settings.command == kTrain && train.local_batch == 0 && train.global_batch == 0) {
    train.local_batch = 128;
    settings.notes.push_back("neither --local-batch nor --global-batch is given: local batch 128");
  }
  const bool timed = (settings.command & (kSweep | kScale | kStudy)) != 0;
  if (timed && train.window_steps == 0) train.window_steps = train::Options::kWholeEpoch;
  if (settings.command == kSearch && train.epochs == 0) {
    train.epochs = kSearchEpochs;
    settings.notes.push_back(fmt::format("--epochs is not given: {:g} epochs", kSearchEpochs));
  }
  if (settings.command == kTrain && train.epochs == 0 && train.steps == 0 && train.window_steps == 0) {
    train.epochs = 1;
    settings.notes.push_back("neither --epochs nor --steps is given: 1 epoch");
  }
}

/// Notes options that were given but have no effect, unless some runs use other options (remedies set their
/// own; the batch of the rate is the baseline's for all of them).
void note_unread(Settings& settings) {
  const bool has_remedies = (settings.command & (kTrain | kSweep | kScale | kSearch)) == 0;
  for (const auto* option : unread_options(settings))
    if (!has_remedies || option->setting == "lr-batch")
      settings.notes.push_back(
          fmt::format("--{} changes nothing {}", option->name(), option->rules.read_if.why_not()));
  const auto& train = settings.train;
  if ((settings.command & (kTrain | kSearch)) != 0 && train.epochs > 0 &&
      train.schedule.warmup_epochs > train.epochs)
    settings.notes.push_back(
        fmt::format("--warmup {:g} is longer than the {:g} epoch{} of this training: the learning rate never "
                    "reaches its peak",
                    train.schedule.warmup_epochs, train.epochs, train.epochs == 1 ? "" : "s"));
}

/// What --compare batches needs, and what needs it.
void check_compared_batches(const Settings& settings) {
  const auto& axes = settings.study.converge;
  if (settings.command == kConverge && settings.is_given("seeds") && settings.is_given("repeats"))
    base::fail(ErrorKind::usage, "--seeds and --repeats say the same in converge; give one of them");
  if (axes.batches.empty()) {
    for (const Setting only : {Setting("batches"), Setting("rates")})
      if (settings.command == kConverge && settings.is_given(only))
        base::fail(ErrorKind::usage,
                   "--{} is for --compare batches, and this command compares {}; give it, or leave "
                   "--{} out",
                   only.key(),
                   axes.shuffle           ? "orders"
                   : axes.workers.empty() ? "remedies"
                                          : "workers",
                   only.key());
    return;
  }
  if (settings.command != kConverge)
    base::fail(
        ErrorKind::usage,
        "--compare batches trains each batch at several rates and is no part of a study; run paceline converge");
  if (!settings.is_given("batches") || settings.study.scale.automatic_batches)
    base::fail(
        ErrorKind::usage,
        "--compare batches needs a list of global batches, such as --batches 32,64,128,256,512; the fit needs "
        "four of them");
  if (!settings.train.target)
    base::fail(
        ErrorKind::usage,
        "--compare batches counts the steps to a target; give one, such as --target accuracy=0.97 or loss=0.1");
  if (settings.is_given("variants"))
    base::fail(
        ErrorKind::usage,
        "--variants names remedies of one large batch, but --compare batches compares batches; give one of them");
}

/// Checks rules between options that depend on neither data nor machine; train::resolve() checks the others.
void check_together(const Settings& settings) {
  const auto& train = settings.train;
  const auto& converge = settings.study.converge;
  if (train.rule.nesterov && (train.rule.kind != engine::UpdateKind::sgd || train.rule.momentum == 0))
    base::fail(ErrorKind::usage,
               "--nesterov needs --optimizer sgd with a --momentum above 0, and momentum is {:g}",
               train.rule.momentum);
  if (settings.command == kScale && settings.study.scale.automatic_batches)
    base::fail(ErrorKind::usage,
               "--batches auto is for sweep: scale compares the same batches on every number of workers; "
               "give a list such as 32,128,512");
  if (settings.command == kConverge && converge.workers.empty() && settings.is_given("workers") &&
      settings.study.scale.workers.size() > 1)
    base::fail(
        ErrorKind::usage,
        "--workers names {} numbers, but the remedies of a large batch are compared on one; give one, or "
        "--compare workers",
        settings.study.scale.workers.size());
  if (settings.command == kStudy && !settings.study.with_sweep && !settings.study.with_scale &&
      !settings.study.with_converge)
    base::fail(ErrorKind::usage,
               "--no-with-sweep, --no-with-scale and --no-with-converge leave a study nothing to measure; "
               "leave one of them out");
  check_compared_batches(settings);
  if (converge.shuffle && (settings.is_given("variants") || settings.is_given("shuffle")))
    base::fail(ErrorKind::usage, "--compare shuffle chooses the orders that it compares; leave out --{}",
               settings.is_given("shuffle") ? "shuffle" : "variants, which name remedies of a large batch");
  if (!converge.workers.empty() && settings.is_given("variants"))
    base::fail(
        ErrorKind::usage,
        "--variants names remedies of one large batch, but --compare workers compares numbers of workers; "
        "give one of them");
  if (converge.workers.size() == 1)
    base::fail(ErrorKind::usage,
               "--compare workers needs at least two numbers of workers, such as --workers 1,2,4");
  if (settings.command == kConverge && converge.workers.empty() && !converge.shuffle &&
      converge.batches.empty() && converge.large_batch <= converge.baseline_batch)
    base::fail(ErrorKind::usage,
               "--large-batch {} must be larger than --baseline-batch {}, which it is compared with",
               converge.large_batch, converge.baseline_batch);
}

/// Whether a search may vary the option: the training's result must depend on it, but it must not be the
/// data, the length or the workers.
bool is_searched(const Option& option) {
  constexpr Setting kOthers[]{"model",          "precision", "label-smoothing", "crop-padding",
                              "crop-fill",      "flip",      "local-batch",     "global-batch",
                              "loader-threads", "lookahead", "lookahead-keep",  "lookahead-power",
                              "mixup",          "cutmix"};
  return option.is_of_the_rule() || std::ranges::count(kOthers, option.setting) > 0;
}

/// Every combination of the values in lists, with the single values of other options. The first list varies
/// slowest.
std::vector<std::vector<Assignment>> combinations(const std::vector<Assignment>& joined) {
  std::vector<std::vector<Assignment>> all{{}};
  for (const auto& given : joined) {
    std::vector<std::string> values{given.text};
    if (is_searched(*given.option) && given.text.find(',') != std::string::npos) {
      try {
        values = base::parts(given.text);
      } catch (const base::Error& error) {
        throw base::Error(error.kind(), given.where + " " + error.what());
      }
    }
    std::vector<std::vector<Assignment>> longer;
    for (const auto& combination : all)
      for (const auto& value : values) {
        longer.push_back(combination);
        longer.back().push_back(given);
        longer.back().back().text = value;
      }
    all = std::move(longer);
  }
  return all;
}

/// "lr 0.1, local-batch 64": the values of the options that have lists.
std::string name_of_combination(const std::vector<Assignment>& combination,
                                const std::vector<Assignment>& joined) {
  std::string name;
  for (std::size_t i = 0; i < joined.size(); ++i)
    if (combination[i].text != joined[i].text)
      name += fmt::format("{}{} {}", name.empty() ? "" : ", ", joined[i].option->name(), combination[i].text);
  return name.empty() ? "as given" : name;
}

/// Everything on which a training with these settings depends: equal texts mean equal trainings.
std::map<std::string, std::string> what_is_read(const Settings& settings) {
  auto read = train::settings(settings.train);
  for (const auto* option : unread_options(settings)) read.erase(std::string(option->name()));
  return read;
}

/// The notes that all configurations have in common, since an option that any of them uses has an effect.
std::vector<std::string> common_notes(const std::vector<Settings>& all) {
  auto notes = all.front().notes;
  std::erase_if(notes, [&](const std::string& note) {
    return std::ranges::any_of(all,
                               [&](const auto& one) { return std::ranges::count(one.notes, note) == 0; });
  });
  return notes;
}

/// The settings of all options but for the lists of a search.
Settings settings_of(Command command, const std::vector<Assignment>& given) {
  Settings settings = defaults(command);
  take_values(settings, given);
  take_defaults(settings);
  check_together(settings);
  note_unread(settings);
  return settings;
}

/// The settings of the first combination, and the options of all. If combinations differ only in options that
/// none of them uses (the momentum of adam), only the first is trained, with a note.
Settings merge_search(Command command, const std::vector<Assignment>& joined) {
  std::vector<Settings> all;
  std::vector<std::string> doubles;
  std::vector<study::Configuration> configurations;
  std::vector<std::map<std::string, std::string>> read;
  for (const auto& combination : combinations(joined)) {
    Settings settings = settings_of(command, combination);
    const auto name = name_of_combination(combination, joined);
    const auto texts = what_is_read(settings);
    const auto same = std::find(read.begin(), read.end(), texts);
    const auto& first_alike =
        same == read.end() ? name : configurations[static_cast<std::size_t>(same - read.begin())].name;
    if (first_alike != name) {
      doubles.push_back(fmt::format(
          "'{}' is left out: it is the same training as '{}', since they differ only in options that it "
          "does not use",
          name, first_alike));
    } else {
      configurations.push_back({name, settings.train});
      read.push_back(texts);
    }
    all.push_back(std::move(settings));
  }
  Settings first = all.front();
  first.notes = common_notes(all);
  first.notes.insert(first.notes.end(), doubles.begin(), doubles.end());
  first.configurations = std::move(configurations);
  return first;
}

}  // namespace

void check_layer(Command command, const std::vector<Assignment>& layer) {
  if (command == kSearch) {
    (void)merge_search(command, join({layer}));
    return;
  }
  Settings settings = defaults(command);
  take_values(settings, join({layer}));
}

Settings merge_options(Command command, const std::vector<std::vector<Assignment>>& layers) {
  if (command == kSearch) return merge_search(command, join(layers));
  return settings_of(command, join(layers));
}

}  // namespace paceline::cli
