#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/record_times.h"
#include "analysis/compare/setup.h"
#include "measure/setting.h"
#include "report/sections/courses.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using measure::Record;

TableCell optional_value(const std::optional<double>& number) {
  return number ? value(*number) : missing("not evaluated after this epoch");
}

std::string caption_of(const Record& record) {
  const std::string emulated = analysis::emulated(record);
  const auto* seed = measure::find_text(record.settings, "seed");
  const std::string joined = analysis::processes(record) > 1 ? analysis::joined_as(record) : "";
  return fmt::format("{}, global batch {}, {}{}, {}{}{}", record.model.name, record.global_batch,
                     count(record.workers, "worker"), in_brackets(joined), record.precision,
                     seed == nullptr ? "" : ", seed " + *seed,
                     emulated.empty() ? "" : fmt::format(", EMULATED {}", emulated));
}

Table epochs_table(const Record& record, const std::string& id) {
  Table table{.id = id,
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
                          {.key = "test_accuracy", .label = "test accuracy", .format = Format::percent1}}};
  const bool validated = std::any_of(record.epochs.begin(), record.epochs.end(),
                                     [](const auto& epoch) { return epoch.validation_accuracy.has_value(); });
  if (validated) {
    table.columns.push_back({.key = "validation_loss", .label = "validation loss", .format = Format::fixed3});
    table.columns.push_back(
        {.key = "validation_accuracy", .label = "validation accuracy", .format = Format::percent1});
  }
  for (const auto& epoch : record.epochs) {
    table.rows.push_back({value(static_cast<double>(epoch.epoch)), value(static_cast<double>(epoch.updates)),
                          value(epoch.seconds), words(fmt::format("{:.4g}", epoch.lr)),
                          value(epoch.train_loss), value(epoch.train_accuracy),
                          optional_value(epoch.test_loss), optional_value(epoch.test_accuracy)});
    if (!validated) continue;
    table.rows.back().push_back(optional_value(epoch.validation_loss));
    table.rows.back().push_back(optional_value(epoch.validation_accuracy));
  }
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
  Series steps{.name = "step"}, train{.name = "train"}, test{.name = "test"},
      validation{.name = "validation"};
  for (const auto& step : record.steps)
    steps.points.push_back({.x = static_cast<double>(step.update), .y = step.loss});
  for (const auto& epoch : record.epochs) {
    const auto x = static_cast<double>(epoch.updates);
    train.points.push_back({.x = x, .y = epoch.train_loss});
    if (epoch.test_loss) test.points.push_back({.x = x, .y = *epoch.test_loss});
    if (epoch.validation_loss) validation.points.push_back({.x = x, .y = *epoch.validation_loss});
  }
  for (Series* series : {&steps, &train, &test, &validation})
    if (!series->points.empty()) plot.series.push_back(std::move(*series));
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
  Series train{.name = "train"}, test{.name = "test"}, validation{.name = "validation"};
  for (const auto& epoch : record.epochs) {
    const double x = analysis::epochs_done(record, epoch);
    train.points.push_back({.x = x, .y = 100 * epoch.train_accuracy});
    if (epoch.validation_accuracy)
      validation.points.push_back({.x = x, .y = 100 * *epoch.validation_accuracy});
    if (epoch.test_accuracy) test.points.push_back({.x = x, .y = 100 * *epoch.test_accuracy});
  }
  for (Series* series : {&train, &test, &validation})
    if (!series->points.empty()) plot.series.push_back(std::move(*series));
  return plot;
}

}  // namespace

std::optional<Section> training_section(const Conclusions& conclusions) {
  Section section{.id = "training", .title = "Training"};
  for (const Record& record : conclusions.records) {
    if (record.kind != "train" || (record.epochs.empty() && record.steps.empty())) continue;
    const std::string id =
        section.blocks.empty() ? "training" : fmt::format("training-{}", section.blocks.size());
    if (auto chosen = chosen_epoch(record)) section.blocks.push_back(std::move(*chosen));
    if (!record.epochs.empty()) {
      section.blocks.push_back(epochs_table(record, id));
      const Record* const one[] = {&record};
      const auto course = analysis::course(one);
      if (auto said = said_of_overfitting("The training", course)) section.blocks.push_back(std::move(*said));
      if (auto said = said_of_steadiness(course)) section.blocks.push_back(plain(std::move(*said)));
    }
    section.blocks.push_back(loss_plot(record, id));
    if (!record.epochs.empty()) section.blocks.push_back(accuracy_plot(record, id));
  }
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace paceline::report
