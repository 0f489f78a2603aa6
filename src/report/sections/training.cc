#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/compare/cell.h"
#include "analysis/compare/setup.h"
#include "measure/setting.h"
#include "report/answers/wording.h"
#include "report/sections/curves.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Convergence;
using analysis::Estimate;
using analysis::Variant;
using analysis::WholeTraining;
using analysis::WholeTrainings;

constexpr const char* kWholeTrainingsDefinition =
    "Seconds of training, without evaluation and checkpoints. Speedup: the baseline's time over this one's; "
    "efficiency: the speedup over the ratio of the numbers of workers. An epoch passes over the same "
    "images, so its speedup is one of throughput; trainings in all are compared only after as many epochs. "
    "To the common accuracy: the time until the accuracy first reached the highest value that all trainings "
    "reached (without those that end clearly below the baseline): what more workers gain at equal accuracy. "
    "Accuracy: mean over seeds, with one standard error.";

/// Columns of the efficiencies in a row, before those of the set-up are inserted.
constexpr std::size_t kEfficiencyAt = 5, kTotalEfficiencyAt = 8;

constexpr const char* kRefused = "its times are not compared with the baseline's: see below";
constexpr const char* kNoCommonAccuracy =
    "not every seed has an accuracy by epoch, of the test set or of a validation part";

TableCell seconds_cell(const Estimate& time, const Variant& variant, const char* reason) {
  return time.n > 0 ? with_mark(figure(time), marks_of(*variant.cell)) : missing(reason);
}

TableCell ratio_cell(const std::optional<Estimate>& ratio, bool is_baseline, const std::string& reason,
                     const std::string& mark) {
  return ratio ? with_mark(figure(*ratio), mark) : missing(is_baseline ? "is the baseline" : reason);
}

/// Why no ratio of total times is given.
std::string no_total(const Variant& variant, const Variant& baseline, const WholeTraining& one) {
  if (!one.times.comparable()) return kRefused;
  if (!one.as_many_epochs)
    return fmt::format("it trained {}, the baseline {}", epochs_text(variant.epochs),
                       amount(baseline.epochs));
  return "the seconds of a part of it, or of the baseline, are not known";
}

std::vector<TableCell> row_of_training(const Variant& variant, const Variant& baseline,
                                       const WholeTraining& one, bool is_baseline, bool has_common_accuracy) {
  constexpr const char* kPart = "the seconds of a part of it are not known";
  const char* const never = has_common_accuracy ? "not every seed reached it" : kNoCommonAccuracy;
  const char* const no_epoch = one.times.comparable() ? "no whole epoch was trained" : kRefused;
  const std::string no_ratio = no_total(variant, baseline, one);
  const std::string mark = short_mark_of(worst_of({baseline.cell, variant.cell}));
  std::vector<TableCell> row{
      words(variant.name),
      value(variant.cell->workers),
      value(variant.cell->global_batch),
      seconds_cell(one.epoch_s, variant, "no whole epoch was trained"),
      ratio_cell(one.epoch_speedup, is_baseline, no_epoch, mark),
      ratio_cell(one.epoch_efficiency, is_baseline, no_epoch, mark),
      seconds_cell(one.total_s, variant, kPart),
      ratio_cell(one.total_speedup, is_baseline, no_ratio, mark),
      ratio_cell(one.total_efficiency, is_baseline, no_ratio, mark),
      seconds_cell(one.to_accuracy_s, variant, never),
      ratio_cell(one.to_accuracy_speedup, is_baseline, one.times.comparable() ? never : kRefused, mark),
      with_error(variant.accuracy, variant.standard_error)};
  if (one.times.shares_cores)
    for (const std::size_t at : {kEfficiencyAt, kTotalEfficiencyAt}) row[at] = with_mark(row[at], "†");
  return row;
}

/// Adds footnotes on what forbids or qualifies the ratios of its times.
void explain_training(Footnotes& footnotes, const Variant& variant, const WholeTraining& one) {
  for (const std::string& refusal : one.times.refusals)
    footnotes.add(
        fmt::format("{}: its times are not compared with the baseline's: {}.", variant.name, refusal));
  for (const std::string& remark : one.times.remarks) {
    // A remark on an option concerns the training rule, which the name states and which costs no time.
    if (!remark.starts_with("--"))
      footnotes.add(fmt::format("{}{}: {}.", one.times.shares_cores ? "† " : "", variant.name, remark));
  }
}

/// "after every epoch", "every 5 epochs"
std::string at_every(std::int64_t epochs) {
  return epochs == 1 ? "after every epoch" : fmt::format("every {} epochs", epochs);
}

/// If the accuracy is evaluated less often, the time to reach it can only be later.
void explain_looks(Footnotes& footnotes, const Variant& variant, const WholeTraining& one,
                   const WholeTraining& baseline) {
  if (one.looked_every == baseline.looked_every || one.looked_every == 0 || baseline.looked_every == 0)
    return;
  const bool is_later = one.looked_every > baseline.looked_every;
  footnotes.add(fmt::format(
      "{}: its accuracy was evaluated {}, the baseline's {}: therefore {} time to the common accuracy can "
      "only be later, and the speedup to it {}.",
      variant.name, at_every(one.looked_every), at_every(baseline.looked_every),
      is_later ? "its" : "the baseline's", is_later ? "smaller" : "larger"));
}

const char* part_of_training(const WholeTrainings& whole) {
  return whole.of_validation ? "validation" : "test";
}

using measure::EpochRecord;
using measure::Record;

constexpr const char* kNotEvaluated = "not evaluated after this epoch";

std::string caption_of(const Record& record) {
  const std::string emulated = analysis::emulated(record);
  const auto* seed = measure::find_text(record.settings, "seed");
  const std::string joined = analysis::processes(record) > 1 ? analysis::joined_as(record) : "";
  return fmt::format("{}, global batch {}, {}{}, {}{}{}", record.model.name, record.global_batch,
                     counted(record.workers, "worker"), in_brackets(joined), record.precision,
                     seed == nullptr ? "" : ", seed " + *seed,
                     emulated.empty() ? "" : fmt::format(", EMULATED {}", emulated));
}

Table epochs_table(const Record& record, const std::string& id) {
  Table table{
      .id = id,
      .title = fmt::format("Epochs: {}", caption_of(record)),
      .definition =
          "Losses are means over samples; test figures count every test image once. Seconds are of "
          "training, without evaluation.",
      .columns = {{.key = "epoch", .label = "epoch", .format = Format::integer},
                  {.key = "updates", .label = "updates", .format = Format::integer},
                  {.key = "seconds", .label = "time", .unit = "s", .format = Format::seconds},
                  {.key = "lr", .label = "last lr"},
                  {.key = "train_loss", .label = "train loss", .format = Format::fixed3},
                  {.key = "train_accuracy", .label = "train accuracy", .format = Format::percent1},
                  {.key = "test_loss", .label = "test loss", .format = Format::fixed3},
                  {.key = "test_accuracy", .label = "test accuracy", .format = Format::percent1},
                  {.key = "test_top_5", .label = "test top-5", .format = Format::percent1},
                  {.key = "validation_loss", .label = "validation loss", .format = Format::fixed3},
                  {.key = "validation_accuracy", .label = "validation accuracy", .format = Format::percent1},
                  {.key = "validation_top_5", .label = "validation top-5", .format = Format::percent1}}};
  for (const auto& epoch : record.epochs) {
    table.rows.push_back(
        {value(epoch.epoch), value(epoch.updates), value(epoch.seconds),
         words(fmt::format("{:.4g}", epoch.lr)), value(epoch.train_loss), value(epoch.train_accuracy),
         value(epoch.test_loss, kNotEvaluated), value(epoch.test_accuracy, kNotEvaluated),
         value(epoch.test_top_5, kNotEvaluated), value(epoch.validation_loss, kNotEvaluated),
         value(epoch.validation_accuracy, kNotEvaluated), value(epoch.validation_top_5, kNotEvaluated)});
  }
  // Columns of figures that no epoch has are left out.
  const std::pair<const char*, std::optional<double> EpochRecord::*> optional_columns[] = {
      {"test_top_5", &EpochRecord::test_top_5},
      {"validation_loss", &EpochRecord::validation_accuracy},
      {"validation_accuracy", &EpochRecord::validation_accuracy},
      {"validation_top_5", &EpochRecord::validation_top_5}};
  for (const auto& [key, figure] : optional_columns)
    if (std::ranges::none_of(record.epochs,
                             [figure = figure](const auto& epoch) { return (epoch.*figure).has_value(); }))
      remove_column(table, key);
  for (const auto& change : record.changes.value_or(std::vector<measure::ChangeRecord>()))
    table.footnotes.push_back(fmt::format("Resumed: {}.", measure::sentence(change)));
  if (record.status != "complete")
    table.footnotes.push_back(fmt::format("{}: {}.", record.status, record.reason));
  return table;
}

/// The run's own note on the epoch chosen by its validation set; it belongs to the answers, not to the
/// circumstances.
std::optional<Paragraph> chosen_epoch(const Record& record) {
  for (const std::string& note : record.notes)
    if (note.starts_with("best epoch by validation accuracy"))
      return finding(fmt::format("B{}.", note.substr(1)));
  return std::nullopt;
}

Plot loss_plot(const Record& record, const std::string& id) {
  Plot plot{.id = id + "-loss",
            .title = "Loss over updates",
            .caption = fmt::format("Means over an epoch's samples; test: over the whole test set. One "
                                   "training: {}.",
                                   caption_of(record)),
            .x = {.label = "updates"},
            .y = {.label = "loss"}};
  Series steps{.name = "step"}, train{.name = "train"};
  for (const auto& step : record.steps)
    steps.points.push_back({.x = static_cast<double>(step.update), .y = step.loss});
  for (const auto& epoch : record.epochs)
    train.points.push_back({.x = static_cast<double>(epoch.updates), .y = epoch.train_loss});
  for (Series* series : {&steps, &train})
    if (!series->points.empty()) plot.series.push_back(std::move(*series));
  const auto at = [](const auto& epoch) { return static_cast<double>(epoch.updates); };
  add_held_out(plot.series, record, {{.name = "test"}, measure::kTestImages, &EpochRecord::test_loss, 1, at});
  add_held_out(plot.series, record,
               {{.name = "validation"}, measure::kValidationImages, &EpochRecord::validation_loss, 1, at});
  return plot;
}

Plot accuracy_plot(const Record& record, const std::string& id) {
  Plot plot{
      .id = id + "-accuracy",
      .title = "Accuracy over epochs",
      .caption = fmt::format(
          "Train: as the images were seen during the epoch (with --augment, changed at random). Test: after "
          "it. One training, no interval over seeds: {}.",
          caption_of(record)),
      .x = {.label = "epoch"},
      .y = {.label = "accuracy", .unit = "%"}};
  Series train{.name = "train"};
  const auto at = [&](const auto& epoch) { return analysis::epochs_done(record, epoch); };
  for (const auto& epoch : record.epochs)
    train.points.push_back({.x = at(epoch), .y = 100 * epoch.train_accuracy});
  if (!train.points.empty()) plot.series.push_back(std::move(train));
  add_held_out(plot.series, record,
               {{.name = "test"}, measure::kTestImages, &EpochRecord::test_accuracy, 100, at});
  add_held_out(
      plot.series, record,
      {{.name = "validation"}, measure::kValidationImages, &EpochRecord::validation_accuracy, 100, at});
  return plot;
}

}  // namespace

Table whole_trainings_table(const Convergence& result, const WholeTrainings& whole) {
  Table table{
      .id = "converge-workers",
      .title = "Whole trainings: time and speedup against the workers",
      .definition = kWholeTrainingsDefinition,
      .columns = {
          {.key = "variant", .label = "training"},
          {.key = "workers", .label = "workers", .format = Format::integer},
          {.key = "global_batch", .label = "global batch", .format = Format::integer},
          {.key = "epoch", .label = "an epoch", .unit = "s", .format = Format::seconds},
          {.key = "epoch_speedup", .label = "speedup", .format = Format::fixed2},
          {.key = "epoch_efficiency", .label = "efficiency", .format = Format::percent1},
          {.key = "total", .label = "in all", .unit = "s", .format = Format::seconds},
          {.key = "total_speedup", .label = "speedup in all", .format = Format::fixed2},
          {.key = "total_efficiency", .label = "efficiency in all", .format = Format::percent1},
          {.key = "to_accuracy", .label = "to the common accuracy", .unit = "s", .format = Format::seconds},
          {.key = "to_accuracy_speedup", .label = "speedup to it", .format = Format::fixed2},
          {.key = "accuracy", .label = "accuracy", .format = Format::percent1}}};
  Footnotes footnotes;
  std::vector<const analysis::Cell*> cells;
  if (whole.common_accuracy)
    footnotes.add(fmt::format("The common {} accuracy is {}.", part_of_training(whole),
                              percent(*whole.common_accuracy)));
  else
    footnotes.add(fmt::format("No common accuracy: {}.", kNoCommonAccuracy));
  footnotes.add(
      "Accuracies have one standard error to either side; times their 95 % interval, or their extremes.");
  for (std::size_t i = 0; i < whole.trainings.size(); ++i) {
    const Variant& variant = result.variants[whole.trainings[i].variant];
    const Variant& baseline = result.variants[whole.trainings[whole.baseline].variant];
    table.rows.push_back(row_of_training(variant, baseline, whole.trainings[i], i == whole.baseline,
                                         whole.common_accuracy.has_value()));
    cells.push_back(variant.cell);
    footnotes.explain_marks(*variant.cell);
    explain_training(footnotes, variant, whole.trainings[i]);
    explain_looks(footnotes, variant, whole.trainings[i], whole.trainings[whole.baseline]);
    if (variant.seeds == 1)
      footnotes.add(
          "One seed: a time to an accuracy is that of one course, and the next may take an epoch more.");
  }
  insert_setup_columns(table, 2, cells);
  table.footnotes = footnotes.take();
  return table;
}

std::optional<std::string> text_about_whole_trainings(const Convergence& result,
                                                      const WholeTrainings& whole) {
  const WholeTraining* most = nullptr;
  for (std::size_t i = 0; i < whole.trainings.size(); ++i) {
    const WholeTraining& one = whole.trainings[i];
    if (i == whole.baseline || !one.epoch_speedup) continue;
    // With the same number of workers the more accurate variant: anyone who trains on more workers uses the
    // remedy that keeps the accuracy.
    const auto workers = [&](const WholeTraining& of) { return result.variants[of.variant].cell->workers; };
    const auto accuracy = [&](const WholeTraining& of) { return result.variants[of.variant].accuracy; };
    if (most == nullptr || workers(one) > workers(*most) ||
        (workers(one) == workers(*most) && accuracy(one) > accuracy(*most)))
      most = &one;
  }
  if (most == nullptr) return std::nullopt;
  const Variant &variant = result.variants[most->variant],
                &first = result.variants[whole.trainings[whole.baseline].variant];
  std::vector<std::string> parts{fmt::format("speedup of an epoch {} (efficiency {})",
                                             with_interval(*most->epoch_speedup, Format::fixed2),
                                             percent(most->epoch_efficiency->median))};
  if (most->total_speedup)
    parts.push_back(
        fmt::format("the training in all {}", with_interval(*most->total_speedup, Format::fixed2)));
  else if (!most->as_many_epochs)
    parts.push_back(fmt::format("no speedup in all, since it trained {} and the baseline {}",
                                epochs_text(variant.epochs), amount(first.epochs)));
  if (most->to_accuracy_speedup)
    parts.push_back(fmt::format("to a {} accuracy of {} {}", part_of_training(whole),
                                percent(*whole.common_accuracy),
                                with_interval(*most->to_accuracy_speedup, Format::fixed2)));
  const std::string shares =
      variant.cell->oversubscribed
          ? " More worker threads than cores: no speedup of machines with a core for each."
          : "";
  const std::string cores = most->times.shares_cores
                                ? fmt::format(" {} against {}: the ideal is not the number of workers.",
                                              workers_on_cores(*variant.cell), workers_on_cores(*first.cell))
                                : "";
  std::string beside = beside_others(worst_of({first.cell, variant.cell}));
  if (!beside.empty()) beside = fmt::format("as timed {}, ", beside);
  return fmt::format("Whole trainings, {} against {}: {}{}; accuracy {} instead of {} ({}).{}{}{}",
                     variant.name, first.name, beside, fmt::join(parts, ", "), percent(variant.accuracy),
                     percent(first.accuracy),
                     variant.to_baseline ? variant.to_baseline->word() : "not compared", cores, shares,
                     text_about_emulation(*variant.cell));
}

std::optional<Section> training_section(const Conclusions& conclusions) {
  Section section{.id = "training", .title = "Training"};
  for (const Record& record : conclusions.records) {
    if (record.kind != "train" || (record.epochs.empty() && record.steps.empty())) continue;
    const std::string id =
        section.blocks.empty() ? "training" : fmt::format("training-{}", section.blocks.size());
    add_block(section.blocks, chosen_epoch(record));
    if (!record.epochs.empty()) {
      section.blocks.push_back(epochs_table(record, id));
      const Record* const one[] = {&record};
      const auto course = analysis::course(one);
      add_block(section.blocks, text_about_overfitting("The training", course));
      if (auto said = text_about_steadiness(course)) section.blocks.push_back(plain(std::move(*said)));
    }
    section.blocks.push_back(loss_plot(record, id));
    if (!record.epochs.empty()) section.blocks.push_back(accuracy_plot(record, id));
    if (const auto noise = analysis::noise_course(record)) {
      section.blocks.push_back(plain(text_about_noise(*noise)));
      if (auto plot = noise_plot(*noise, id, caption_of(record)); !plot.series.front().points.empty())
        section.blocks.push_back(std::move(plot));
    }
  }
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace paceline::report
