#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/trainings/converge.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/curves.h"
#include "report/sections/parts.h"
#include "report/text.h"

// How much accuracy a larger batch costs.

namespace paceline::report {
namespace {

constexpr const char* kQuestion = "How accurate?";

using analysis::Convergence;
using analysis::Variant;
using measure::EpochRecord;

/// 0.3170 -> "32 points"; below ten with a decimal.
std::string points_of_difference(double difference) {
  const double size = 100 * std::abs(difference);
  return size < 9.95 ? fmt::format("{:.1f} points", size) : fmt::format("{:.0f} points", size);
}

/// "; the best remedy returns 18 points", or of several between which no difference is certain "up to".
std::string text_about_returned(const Convergence& result) {
  double most = 0;
  for (const std::size_t place : result.give_back_most)
    if (const auto& gain = result.variants[place].to_large) most = std::max(most, gain->value);
  if (most <= 0) return "";
  return result.give_back_most.size() == 1
             ? fmt::format("; the best remedy returns {}", points_of_difference(most))
             : fmt::format("; {} remedies return up to {}",
                           amount(static_cast<double>(result.give_back_most.size())),
                           points_of_difference(most));
}

/// "Batch 512 loses 32 points in 3 epochs; the best remedy returns 18."
std::string text_about_large(const Convergence& result) {
  if (!result.large) return "";
  const Variant& large = result.variants[*result.large];
  if (!large.to_baseline) return "";
  const std::string batch = integer(large.cell->global_batch);
  if (large.to_baseline->is_noise()) return fmt::format("Batch {} shows no difference beyond noise.", batch);
  const double change = large.to_baseline->value;
  return fmt::format("Batch {} {} {} in {}{}.", batch, change < 0 ? "loses" : "gains",
                     points_of_difference(change), epochs_text(large.epochs), text_about_returned(result));
}

/// The x axis of a plot of convergence.
Over over_of(const Plot& plot) {
  if (plot.id.ends_with("epochs")) return Over::epochs;
  return plot.id.ends_with("updates") ? Over::updates : Over::seconds;
}

std::string name_of_axis(Over over) {
  return over == Over::epochs ? "epoch" : over == Over::updates ? "update" : "time";
}

/// Whether the answer is about this variant: the baseline, the large batch or the best remedy.
bool is_told(const Convergence& result, std::size_t place) {
  return place == result.baseline.value_or(0) || (result.large && place == *result.large) ||
         (!result.give_back_most.empty() && place == result.give_back_most.front());
}

/// Adds lines for the variants in `plot`, which can be compared over its axis. Training lines of variants
/// that the answer is not about are hidden at first.
void add_lines(Figure::View& view, const Convergence& result, const Plot& plot, Quantity quantity) {
  const bool is_training = quantity == Quantity::train_accuracy || quantity == Quantity::train_loss;
  for (std::size_t i = 0; i < result.variants.size(); ++i) {
    const Variant& variant = result.variants[i];
    if (std::ranges::find(plot.series, variant.name, &Series::name) == plot.series.end()) continue;
    Series series = curve(variant, over_of(plot), quantity);
    if (series.points.empty()) continue;
    if (is_training) {
      series.name += ", training";
      series.hidden = !is_told(result, i);
    }
    view.series.push_back(std::move(series));
  }
}

Figure::View accuracy_view(const Convergence& result, const Plot& plot) {
  Figure::View view{.name = name_of_axis(over_of(plot)),
                    .x = plot.x,
                    .y = {.label = "accuracy", .unit = "%"},
                    .series = plot.series};
  add_lines(view, result, plot, Quantity::train_accuracy);
  return view;
}

Figure::View loss_view(const Convergence& result, const Plot& plot) {
  Figure::View view{.name = "loss by " + name_of_axis(over_of(plot)), .x = plot.x, .y = {.label = "loss"}};
  add_lines(view, result, plot, Quantity::test_loss);
  add_lines(view, result, plot, Quantity::train_loss);
  return view;
}

/// The record of the subject with the most epochs that were tested or validated, else with the most epochs;
/// null if none has any.
const measure::Record* longest_training(const Subject& subject) {
  const measure::Record* found = nullptr;
  const auto length = [](const measure::Record& record) {
    return std::pair(std::ranges::count_if(record.epochs, is_evaluated), record.epochs.size());
  };
  for (const analysis::Cell* cell : subject.cells.cells)
    for (const auto* records : {&cell->records, &cell->lost})
      for (const measure::Record* record : *records)
        if (!record->epochs.empty() && (found == nullptr || length(*record) > length(*found))) found = record;
  return found;
}

/// What one training reached, without others to compare it with.
Answer answer_of_training(const measure::Record& record) {
  const auto& epochs = record.epochs;
  Answer answer{
      .id = "accuracy", .question = kQuestion, .certainty = Certainty::careful, .chip = "one training"};
  answer.records.push_back(record.id);
  answer.n = 1;
  const auto is_tested = [](const auto& epoch) { return epoch.test_accuracy.has_value(); };
  const auto accuracy = std::ranges::any_of(epochs, is_tested) ? &EpochRecord::test_accuracy
                                                               : &EpochRecord::validation_accuracy;
  std::vector<const EpochRecord*> evaluated;
  for (const auto& epoch : epochs)
    if (epoch.*accuracy) evaluated.push_back(&epoch);
  if (evaluated.empty()) {
    answer.figure = percent(epochs.back().train_accuracy);
    answer.unit = "of training images";
    answer.sentence = fmt::format("After {}; no epoch was tested or validated.",
                                  epochs_text(analysis::epochs_done(record, epochs.back())));
    return answer;
  }
  const auto& last = *evaluated.back();
  answer.value = last.*accuracy;
  answer.figure = percent(*answer.value);
  answer.unit = accuracy == &EpochRecord::test_accuracy ? "of test images" : "of validation images";
  answer.sentence = fmt::format("After {}", epochs_text(analysis::epochs_done(record, last)));
  const auto* part =
      accuracy == &EpochRecord::test_accuracy ? measure::kTestImages : measure::kValidationImages;
  if (evaluated.size() > 1 &&
      are_of_same_images(record, part, evaluated[evaluated.size() - 2]->updates, last.updates)) {
    const auto& before = *evaluated[evaluated.size() - 2];
    answer.sentence += fmt::format("; {} after {}", percent(*(before.*accuracy)),
                                   epochs_text(analysis::epochs_done(record, before)));
  }
  answer.sentence += record.status == "complete" ? "." : fmt::format("; the training is {}.", record.status);
  return answer;
}

/// The trainings of several batches to one target of this subject; null if there are none.
const analysis::StepsToTarget* target_of(const Subject& subject) {
  for (const auto& one : subject.conclusions.targets)
    for (const analysis::Cell* cell : subject.cells.cells)
      if (one.rows.size() > 1 && std::ranges::find(one.records, cell->records.front()) != one.records.end())
        return &one;
  return nullptr;
}

/// Up to which batch steps are saved; without a fit the batch that needed fewest.
Answer answer_of_target(const analysis::StepsToTarget& target) {
  Answer answer{.id = "accuracy",
                .question = "Up to which batch are steps saved?",
                .certainty = Certainty::not_decided,
                .evidence = "steps-to-target"};
  for (const auto* record : target.records) answer.records.push_back(record->id);
  const auto count = [](double number) { return integer(std::round(number)); };
  if (target.fit) {
    const auto& critical = target.fit->critical_batch;
    answer.figure = count(critical.median);
    answer.unit = "images, the critical batch";
    answer.sentence = fmt::format("It needs twice the fewest steps. Fitted to batches from {} to {}.",
                                  count(static_cast<double>(target.fit->from_batch)),
                                  count(static_cast<double>(target.fit->to_batch)));
    answer.value = critical.median;
    answer.n = critical.n;
    if (!std::isfinite(critical.high)) return answer;
    answer.low = critical.low;
    answer.high = critical.high;
    answer.certainty = Certainty::decided;
    const bool has_one_seed =
        std::ranges::any_of(target.rows, [](const auto& row) { return row.is_in_fit && row.seeds < 2; });
    if (has_one_seed) {
      answer.certainty = Certainty::careful;
      answer.chip = "one seed";
    }
    return answer;
  }
  const analysis::BatchSteps* fewest = nullptr;
  for (const auto& row : target.rows)
    if (row.steps > 0 && (fewest == nullptr || row.steps < fewest->steps)) fewest = &row;
  if (fewest == nullptr) {
    answer.certainty = Certainty::not_measured;
    answer.sentence = "No training reached the target.";
    return answer;
  }
  answer.figure = count(static_cast<double>(fewest->batch));
  answer.unit = fmt::format("images: {} steps", count(fewest->steps));
  answer.sentence = "The fewest of those measured; no curve is fitted to them.";
  answer.value = static_cast<double>(fewest->batch);
  answer.n = fewest->seeds;
  return answer;
}

}  // namespace

Answer accuracy_answer(const Subject& subject) {
  const auto& convergence = subject.conclusions.convergence;
  const auto& cells = subject.cells.cells;
  const bool is_of_subject = convergence && !convergence->variants.empty() &&
                             std::ranges::find(cells, convergence->variants.front().cell) != cells.end();
  if (!is_of_subject) {
    if (const auto* target = target_of(subject)) return answer_of_target(*target);
    if (const auto* record = longest_training(subject)) return answer_of_training(*record);
    return not_measured("accuracy", kQuestion, "Not measured: these runs timed steps, and trained no epoch.",
                        cells.empty() ? "" : command_like(cells.front()->record(), "converge", ""));
  }
  const Variant& baseline = convergence->variants[convergence->baseline.value_or(0)];
  Answer answer{.id = "accuracy",
                .question = kQuestion,
                .certainty = Certainty::decided,
                .figure = percent(baseline.accuracy),
                .unit = fmt::format("at batch {}", integer(baseline.cell->global_batch)),
                .sentence = text_about_large(*convergence),
                .value = baseline.accuracy,
                .low = baseline.accuracy - 2 * baseline.standard_error,
                .high = baseline.accuracy + 2 * baseline.standard_error,
                .n = baseline.seeds,
                .evidence = "accuracy"};
  for (const measure::Record* record : baseline.records) answer.records.push_back(record->id);
  if (answer.sentence.empty()) answer.sentence = fmt::format("After {}.", epochs_text(baseline.epochs));
  const bool one_seed =
      std::ranges::any_of(convergence->variants, [](const Variant& one) { return one.seeds < 2; });
  if (baseline.cell->synthetic || one_seed) {
    answer.certainty = Certainty::careful;
    answer.chip = one_seed ? "one seed" : "drawn data";
  } else if (convergence->large) {
    const auto& to_baseline = convergence->variants[*convergence->large].to_baseline;
    if (to_baseline && !to_baseline->is_clear()) answer.certainty = Certainty::not_decided;
  }
  return answer;
}

std::optional<Figure> accuracy_figure(const Subject& subject) {
  const auto& convergence = subject.conclusions.convergence;
  const Answer answer = accuracy_answer(subject);
  if (answer.certainty == Certainty::not_measured || !convergence || convergence->variants.empty())
    return std::nullopt;
  Figure figure{.id = "accuracy",
                .finding = answer.sentence.substr(0, answer.sentence.rfind('.')),
                .note =
                    "After each epoch, on test and on training images; training images are augmented. Bars: "
                    "one standard error over seeds; with one seed there are none."};
  const auto plots = converge_plots(*convergence);
  for (const Plot& plot : plots) figure.views.push_back(accuracy_view(*convergence, plot));
  for (const Plot& plot : plots)
    if (auto view = loss_view(*convergence, plot); !view.series.empty())
      figure.views.push_back(std::move(view));
  if (figure.views.empty()) return std::nullopt;
  return figure;
}

}  // namespace paceline::report
