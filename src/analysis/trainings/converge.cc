#include "analysis/trainings/converge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/compare/cell_labels.h"
#include "analysis/compare/consistency.h"

namespace paceline::analysis {
namespace {

using measure::find_text;
using measure::Record;
using measure::Setting;
using measure::SettingRole;

std::optional<double> last_accuracy(const Record& record) {
  if (record.epochs.empty() || contradiction(record)) return std::nullopt;
  return measure::final_test_accuracy(record);
}

/// The record's --seed; "": older records lack it.
std::string seed_of(const Record& record) { return setting_text(record, "seed"); }

bool has_accuracy(const Cell& cell) {
  return std::ranges::any_of(cell.records,
                             [](const Record* record) { return last_accuracy(*record).has_value(); });
}

/// The trainings to compare: those of `converge`, and those of `train` if they stand beside others. Whoever
/// puts several trainings into one report compares them, so the report has to judge the comparison.
std::vector<const Cell*> trainings(std::span<const Cell> cells) {
  std::vector<const Cell*> found;
  const auto is_studied = [](const Cell& cell) {
    return cell.kind == "converge" && find_text(cell.record().settings, "target") == nullptr;
  };
  const auto study = std::ranges::find_if(cells, is_studied);
  for (const Cell& cell : cells) {
    // How long one that ends at a target is depends on its accuracy: target/steps_to_target.h compares them.
    if (find_text(cell.record().settings, "target") != nullptr) continue;
    const bool is_of_study =
        study == cells.end() || (cell.record().model.name == study->record().model.name &&
                                 cell.record().data.name == study->record().data.name);
    if (is_studied(cell) || (cell.kind == "train" && has_accuracy(cell) && is_of_study))
      found.push_back(&cell);
  }
  return found;
}

/// A single training of `train` with one seed has nothing to be compared with; several seeds have a mean.
bool is_of_one_training(const std::vector<const Cell*>& all, const std::vector<Variant>& variants) {
  return all.size() == 1 && all.front()->kind != "converge" && (variants.empty() || variants[0].seeds < 2);
}

/// Whether the name of a training mentions a difference in this setting. Sizes, length and cores are in its
/// label or in the tables already. The data is the same for all; its spec differs in the path at most.
bool is_named_in_training(std::string_view key) {
  const auto setting = Setting::find(key);
  if (!setting) return true;
  const SettingRole role = setting->role();
  const bool is_said = role == SettingRole::size || role == SettingRole::length || role == SettingRole::cores;
  return !is_said && role != SettingRole::window && *setting != "data";
}

/// A name for a training of `train`, which has none: its sizes, and every setting that differs in the others.
std::string name_among(const Cell& cell, const std::vector<const Cell*>& all) {
  if (!cell.variant.empty()) return cell.variant;
  std::string name = cell.label;
  for (const auto& [setting, value] : cell.record().settings) {
    if (!is_named_in_training(setting)) continue;
    const bool differs = std::ranges::any_of(all, [&](const Cell* other) {
      const auto there = other->record().settings.find(setting);
      return there == other->record().settings.end() || there->second != value;
    });
    const bool is_said = cell.label.find(fmt::format(", {} {}", setting, value)) != std::string::npos;
    if (differs && !is_said) name += fmt::format(", {} {}", setting, value);
  }
  return name;
}

/// Chooses the repeats for the mean at the last epoch: the last one of each seed, without those that ended
/// earlier than the others.
void choose_records(Variant& variant, const Cell& cell) {
  std::int64_t most = 0;
  for (const Record* record : cell.records)
    if (last_accuracy(*record)) most = std::max(most, record->epochs.back().updates);
  for (const Record* record : cell.records) {
    if (!last_accuracy(*record)) continue;
    if (record->epochs.back().updates < most) {
      ++variant.cut_short;
      continue;
    }
    const std::string seed = seed_of(*record);
    const auto same = std::ranges::find_if(
        variant.records, [&](const Record* other) { return !seed.empty() && seed_of(*other) == seed; });
    if (same == variant.records.end()) {
      variant.records.push_back(record);
    } else {
      *same = record;
      ++variant.same_seed;
    }
  }
}

/// Each seed that failed and did not succeed later, with the reason of its last failure.
std::vector<FailedSeed> failures(const Variant& variant, const Cell& cell) {
  std::vector<FailedSeed> found;
  for (const Record* failed : cell.failed_repeats) {
    const std::string seed = seed_of(*failed);
    const auto is_of_seed = [&](const Record* one) { return seed_of(*one) == seed; };
    if (!seed.empty() && std::ranges::any_of(variant.records, is_of_seed)) continue;
    const std::string reason = failed->reason.empty() ? failed->status : failed->reason;
    const auto before = seed.empty() ? found.end() : std::ranges::find(found, seed, &FailedSeed::seed);
    if (before == found.end())
      found.push_back({.seed = seed, .reason = reason});
    else
      before->reason = reason;
  }
  return found;
}

/// What each seed reached. One that failed counts as guessing: leaving it out would flatter what fails.
std::vector<SeedAccuracy> accuracies_by_seed(const Variant& variant) {
  std::vector<SeedAccuracy> reached;
  for (const Record* record : variant.records)
    reached.push_back({.seed = seed_of(*record), .accuracy = *last_accuracy(*record)});
  const auto& classes = variant.record->data.classes;
  const double guessed = classes && !classes->empty() ? 1.0 / static_cast<double>(classes->size()) : 0;
  for (const FailedSeed& failed : variant.failures)
    reached.push_back({.seed = failed.seed, .accuracy = guessed});
  return reached;
}

/// Names of the cells. Cells of two versions of a study have the same names; what tells them apart is added.
std::vector<std::string> names_of_cells(const std::vector<const Cell*>& all) {
  std::vector<std::string> names;
  for (const Cell* cell : all) names.push_back(name_among(*cell, all));
  const auto apart = differences_within(names, all, [](const auto& alike) { return differences(alike); });
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!apart[i].empty()) names[i] += ", " + apart[i];
  return names;
}

/// Whether the setting changes only the batch, the execution or the measurement, but not the training rule.
bool is_of_batch_or_execution(std::string_view key) {
  const auto role = measure::role_of(key);
  return role == SettingRole::size || role == SettingRole::window || role == SettingRole::precision ||
         measure::is_of_execution(key);
}

/// Whether the training rules are the same: only the batch, or the number of workers that share it, differs.
bool has_same_rule(const Record& a, const Record& b) {
  if (a.learning_rate.peak != b.learning_rate.peak) return false;
  return std::ranges::all_of(different_settings(a.settings, b.settings), [](const SettingDifference& one) {
    // The resulting rates are equal, as checked above, so the rule that scales them may differ.
    return is_of_batch_or_execution(one.key) || measure::role_of(one.key) == SettingRole::lr_scaling;
  });
}

/// The variant named "baseline", otherwise the one with the smallest global batch.
std::optional<std::size_t> find_baseline(const std::vector<Variant>& variants) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (variants[i].cell->variant == "baseline") return i;
    if (!found || variants[i].cell->global_batch < variants[*found].cell->global_batch) found = i;
  }
  return found;
}

void compare_with_baseline(Convergence& result, double margin) {
  const Variant& baseline = result.variants[*result.baseline];
  for (std::size_t i = 0; i < result.variants.size(); ++i) {
    Variant& variant = result.variants[i];
    if (i == *result.baseline) continue;
    variant.verdict = compare(*baseline.record, *variant.record, Topic::convergence);
    if (!variant.verdict.comparable()) continue;
    variant.to_baseline = difference(baseline, variant);
    variant.claim = claim(accuracies_by_seed(baseline), accuracies_by_seed(variant), margin);
  }
}

/// Whether the variant has a larger batch than the baseline and no remedy.
bool is_without_remedy(const Variant& baseline, const Variant& variant) {
  return variant.to_baseline && variant.cell->global_batch > baseline.cell->global_batch &&
         has_same_rule(baseline.cell->record(), variant.cell->record());
}

/// Computes how much of the loss each remedy gives back. It is compared with the large batch of the same
/// version if there is one.
void find_given_back(Convergence& result, bool in_same_circumstances) {
  for (std::size_t at = 0; at < result.variants.size(); ++at) {
    const Variant& large = result.variants[at];
    if (!is_without_remedy(result.variants[*result.baseline], large)) continue;
    if (!result.large) result.large = at;
    const Difference lost = *large.to_baseline;
    for (std::size_t i = 0; i < result.variants.size(); ++i) {
      Variant& variant = result.variants[i];
      if (i == at || !variant.to_baseline || variant.large) continue;
      if (in_same_circumstances && circumstances(*variant.record) != circumstances(*large.record)) continue;
      if (variant.cell->global_batch != large.cell->global_batch) continue;
      if (is_without_remedy(result.variants[*result.baseline], variant)) continue;
      variant.large = at;
      variant.to_large = difference(large, variant);
      if (lost.value < 0 && !lost.is_noise()) variant.given_back = variant.to_large->value / -lost.value;
    }
  }
}

void find_best(Convergence& result) {
  if (!result.large) return;
  const auto& variants = result.variants;
  std::vector<std::size_t> remedies;
  for (std::size_t i = 0; i < variants.size(); ++i)
    if (variants[i].large == result.large && variants[i].given_back.value_or(0) > 0) remedies.push_back(i);
  std::ranges::stable_sort(remedies, std::ranges::greater{},
                           [&](std::size_t i) { return *variants[i].given_back; });
  for (const std::size_t i : remedies)
    if (i == remedies.front() || difference(variants[i], variants[remedies.front()]).is_noise())
      result.give_back_most.push_back(i);
}

}  // namespace

bool Difference::is_noise() const { return std::abs(value) < standard_error; }
bool Difference::is_clear() const {
  return std::abs(value) > measure::as_rare_as_two_errors(degrees) * standard_error;
}
const char* Difference::word() const {
  if (is_noise()) return "noise";
  if (!is_clear()) return "weak evidence";
  if (of_survivors) return "of the seeds that did not fail";
  return one_seed ? "beyond the test set's error; one seed" : "clear";
}

Difference difference(double baseline, double baseline_error, double other, double other_error) {
  return {.value = other - baseline, .standard_error = std::hypot(baseline_error, other_error)};
}

Difference difference(const Variant& baseline, const Variant& other) {
  Difference result =
      difference(baseline.accuracy, baseline.standard_error, other.accuracy, other.standard_error);
  result.one_seed = baseline.seeds == 1 || other.seeds == 1;
  result.of_survivors = (result.value > 0 ? other : baseline).failed() > 0;
  double unsure = 0;  // Welch and Satterthwaite: only spreads estimated from seeds contribute
  for (const Variant* one : {&baseline, &other})
    if (one->seeds > 1) unsure += one->seed_variance * one->seed_variance / (one->seeds - 1);
  const double variance = result.standard_error * result.standard_error;
  if (unsure > 0) result.degrees = std::max(1.0, variance * variance / unsure);
  return result;
}

std::optional<Variant> variant_of(const Cell& cell) {
  Variant variant;
  choose_records(variant, cell);
  if (variant.records.empty() || variant.records.back()->data.test_samples <= 0) return std::nullopt;
  std::vector<double> accuracies, losses;
  for (const Record* record : variant.records) {
    accuracies.push_back(*last_accuracy(*record));
    if (record->epochs.back().test_loss) losses.push_back(*record->epochs.back().test_loss);
  }
  const Record* const last = variant.records.back();
  variant.cell = &cell;
  variant.record = last;
  variant.epochs = epochs_done(*last, last->epochs.back());
  variant.updates = last->epochs.back().updates;
  variant.seeds = static_cast<int>(accuracies.size());
  variant.failures = failures(variant, cell);
  for (const auto& epoch : last->epochs) variant.training_s += epoch.seconds;
  const auto whole = epoch_seconds(*last);
  variant.epoch_measured = !whole.empty();
  variant.epoch_s =
      variant.epoch_measured ? measure::estimate(whole).median : variant.training_s / variant.epochs;
  variant.accuracy = measure::mean(accuracies);
  variant.standard_error =
      measure::accuracy_standard_error(accuracies, static_cast<long>(last->data.test_samples));
  variant.seed_variance = variance(accuracies) / variant.seeds;
  if (!losses.empty()) variant.test_loss = measure::mean(losses);
  variant.peak_lr = last->learning_rate.peak;
  return variant;
}

std::string changed_settings(const Record& baseline, const Record& variant) {
  const auto is_free = [](std::string_view key) {  // lr-batch only qualifies scale-lr, which is named
    return is_of_batch_or_execution(key) || key == Setting("lr-batch").key();
  };
  std::vector<std::string> changed;
  for (const auto& [name, before, here] : different_settings(baseline.settings, variant.settings))
    if (!is_free(name)) changed.push_back(here == nullptr ? "no " + name : fmt::format("{} {}", name, *here));
  return fmt::format("{}", fmt::join(changed, ", "));
}

std::optional<Convergence> convergence(std::span<const Cell> cells, double margin) {
  Convergence result{.margin = margin};
  const auto all = trainings(cells);
  if (all.empty()) return std::nullopt;
  const auto names = names_of_cells(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Cell* const cell = all[i];
    const std::string& name = names[i];
    if (auto variant = variant_of(*cell)) {
      variant->name = name;
      result.variants.push_back(std::move(*variant));
    } else {
      result.missing.push_back(
          fmt::format("{}: {}", name, cell->reason.empty() ? "no accuracy was measured" : cell->reason));
    }
  }
  if (is_of_one_training(all, result.variants)) return std::nullopt;
  result.baseline = find_baseline(result.variants);
  if (!result.baseline) return result;
  compare_with_baseline(result, margin);
  for (const bool in_same_circumstances : {true, false}) find_given_back(result, in_same_circumstances);
  find_best(result);
  return result;
}

}  // namespace paceline::analysis
