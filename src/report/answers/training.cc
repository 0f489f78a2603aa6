#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/compare/interval.h"
#include "base/text.h"
#include "measure/record.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/text.h"

// A single training: what it reached, its curves, and what to do with it. There is nothing to choose from, so
// the questions about choices are left out.

namespace paceline::report {
namespace {

using measure::EpochRecord;
using measure::Record;

const Record& record_of(const Subject& subject) { return subject.cells.cells.front()->record(); }

/// Of a page of `serve`.
bool is_running(const Record& record) { return record.status == "running"; }

/// The last epoch that was tested or validated, else the last one.
const EpochRecord& last_evaluated(const Record& record) {
  const auto found = std::ranges::find_if(record.epochs.rbegin(), record.epochs.rend(), is_evaluated);
  return found == record.epochs.rend() ? record.epochs.back() : *found;
}

/// The directory that was typed as --out, as a word for a shell; "" if none was.
std::string typed_directory(const Record& record) {
  const auto directory = typed_value(record, "--out");
  return directory.empty() ? "" : base::shell_word(directory);
}

/// The command that finishes a training that ended before its time; "" if nothing is left to do, or it is not
/// known where its checkpoints are.
std::string command_that_resumes(const Record& record) {
  const auto directory = typed_directory(record);
  if (record.status == "complete" || is_running(record) || directory.empty()) return "";
  return fmt::format("{} --resume {}", without_option(record.command, "--resume"), directory);
}

}  // namespace

bool is_of_one_training(const Subject& subject) {
  const auto& cells = subject.cells.cells;
  return cells.size() == 1 && cells.front()->kind == "train" && !record_of(subject).epochs.empty();
}

Answer training_answer(const Subject& subject) {
  const Record& record = record_of(subject);
  const EpochRecord& last = last_evaluated(record);
  const Reached reached = reached_in(last);
  Answer answer{.id = "best", .value = reached.accuracy, .n = 1, .evidence = "hero"};
  if (record.test_set && record.test_set->accuracy && record.test_set->epoch) {
    // The test set was read once, with the weights that the training chose.
    answer.value = record.test_set->accuracy;
    answer.figure = fmt::format("{} of test images with the weights of epoch {} of {}.",
                                percent(*answer.value), *record.test_set->epoch, record.epochs.back().epoch);
  } else {
    answer.figure = fmt::format("{} of {} images after {} of training.", percent(reached.accuracy),
                                reached.of, epochs_text(analysis::epochs_done(record, last)));
  }
  double seconds = 0;
  for (const EpochRecord& epoch : record.epochs) seconds += epoch.seconds;
  answer.sentence = fmt::format("{} of training", duration(seconds));
  if (subject.best() != nullptr) {
    judge(answer, *subject.best());
    answer.sentence += fmt::format(", {}{} images/s",
                                   answer.chip == mark_of(measure::Disturbance::disturbed) ? "at least " : "",
                                   number(subject.best()->images_per_s.median));
  }
  answer.sentence += ".";
  if (is_running(record))
    answer.sentence += fmt::format(" It goes on: {} updates so far.", integer(record.epochs.back().updates));
  else if (record.status != "complete")
    answer.sentence += fmt::format(" The training is {}: it ended after {} updates.", record.status,
                                   integer(record.epochs.back().updates));
  answer.records.push_back(record.id);
  answer.command = command_that_resumes(record);
  return answer;
}

std::optional<Figure> training_figure(const Subject& subject) {
  const Record& record = record_of(subject);
  if (record.epochs.size() < 2) return std::nullopt;
  const auto last = record.epochs.back().updates;
  const auto is_of_the_same = [&](const EpochRecord& epoch) {  // images as at the end
    return are_of_same_images(record, measure::kTestImages, epoch.updates, last) &&
           are_of_same_images(record, measure::kValidationImages, epoch.updates, last);
  };
  const auto best = std::ranges::max_element(record.epochs, {}, [&](const EpochRecord& epoch) {
    return is_evaluated(epoch) && is_of_the_same(epoch) ? reached_in(epoch).accuracy : -1.0;
  });
  Figure figure{
      .id = "hero",
      .finding = fmt::format("{} of {} images after epoch {}, the best", percent(reached_in(*best).accuracy),
                             reached_in(*best).of, best->epoch),
      .note = "After each epoch. Training figures are means over the epoch, with its augmentation."};
  Figure::View accuracy{.name = "accuracy", .x = {.label = "epoch"}, .y = {.label = "accuracy", .unit = "%"}};
  Figure::View loss{.name = "loss", .x = accuracy.x, .y = {.label = "loss"}};
  const auto at = [&](const EpochRecord& epoch) { return analysis::epochs_done(record, epoch); };
  const Series test{.name = "test"}, validation{.name = "validation"};
  constexpr auto kTest = measure::kTestImages, kValidation = measure::kValidationImages;
  add_held_out(accuracy.series, record, {test, kTest, &EpochRecord::test_accuracy, 100, at});
  add_held_out(accuracy.series, record,
               {validation, kValidation, &EpochRecord::validation_accuracy, 100, at});
  add_held_out(loss.series, record, {test, kTest, &EpochRecord::test_loss, 1, at});
  add_held_out(loss.series, record, {validation, kValidation, &EpochRecord::validation_loss, 1, at});
  Series accuracies{.name = "training", .dashed = true}, losses = accuracies;
  for (const EpochRecord& epoch : record.epochs) {
    accuracies.points.push_back({.x = at(epoch), .y = 100 * epoch.train_accuracy});
    losses.points.push_back({.x = at(epoch), .y = epoch.train_loss});
  }
  accuracy.series.push_back(std::move(accuracies));
  loss.series.push_back(std::move(losses));
  figure.views.push_back(std::move(accuracy));
  figure.views.push_back(std::move(loss));
  return figure;
}

Next steps_after_training(const Subject& subject) {
  const Record& record = record_of(subject);
  const auto directory = typed_directory(record);
  Next next;
  if (auto command = command_that_resumes(record); !command.empty())
    next.steps.push_back({.title = "Finish the training",
                          .why = fmt::format("It is {}.", record.status),
                          .command = std::move(command)});
  if (!directory.empty())
    next.steps.push_back({.title = "See what the model gets wrong",
                          .why = "Accuracy by class, confusions, the most confident mistakes.",
                          .command = "paceline evaluate " + directory});
  next.steps.push_back({.title = "Ask which batch is fastest",
                        .why = "One training shows one batch.",
                        .command = command_like(record, "sweep", "--batches auto")});
  next.steps.push_back({.title = "Ask how many workers help",
                        .why = fmt::format("This training had {}.", counted(record.workers, "worker")),
                        .command = command_like(
                            record, "scale", fmt::format("--workers 1,2 --batches {}", record.local_batch))});
  return next;
}

}  // namespace paceline::report
