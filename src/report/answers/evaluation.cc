#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/terminal_text.h"
#include "report/text.h"

// One evaluated checkpoint: how many images are right, which class is worst, what is confused, which mistakes
// are the most confident.

namespace paceline::report {
namespace {

using analysis::ClassFigures;
using analysis::Evaluation;
using measure::Record;

Answer accuracy_reached(const Record& record, const Evaluation& result) {
  const auto& evaluation = *record.evaluation;
  return {.id = "best",
          .certainty = record.data.synthetic ? Certainty::careful : Certainty::decided,
          .chip = record.data.synthetic ? "drawn data" : "",
          .figure = fmt::format("{} of {} {} images are right.", percent(result.top_1.value),
                                integer(evaluation.samples), evaluation.part),
          .sentence = fmt::format("95 % interval: {:.1f} to {}. {}, after {} updates.",
                                  100 * result.top_1.low, percent(result.top_1.high),
                                  std::filesystem::path(evaluation.checkpoint).filename().string(),
                                  integer(evaluation.updates)),
          .value = result.top_1.value,
          .low = result.top_1.low,
          .high = result.top_1.high,
          .n = static_cast<int>(evaluation.samples),
          .evidence = kConfusion,
          .records = {record.id}};
}

Answer worst_class(const Evaluation& result) {
  Answer answer{.id = "class", .question = "Which class is worst?", .evidence = kClasses};
  const ClassFigures* worst = nullptr;
  for (const auto& one : result.classes)
    if (one.recall && (worst == nullptr || one.recall->value < worst->recall->value)) worst = &one;
  if (worst == nullptr) return not_measured("class", answer.question, "No class has an image.", "");
  const auto place = static_cast<std::size_t>(worst - result.classes.data());
  answer.figure = worst->name;
  answer.unit = percent(worst->recall->value) + " right";
  answer.value = worst->recall->value;
  answer.low = worst->recall->low;
  answer.high = worst->recall->high;
  answer.n = static_cast<int>(worst->samples);
  answer.sentence = fmt::format("{} of {} images.", integer(worst->correct), integer(worst->samples));
  const auto most =
      std::ranges::find_if(result.confusions, [&](const auto& one) { return one.label == place; });
  if (most != result.confusions.end())
    answer.sentence += fmt::format(" {} {} taken for {}.", integer(most->samples),
                                   most->samples == 1 ? "is" : "are", result.classes[most->predicted].name);
  const bool is_below = worst->recall->high < result.top_1.value;
  answer.certainty = is_below ? Certainty::decided : Certainty::tie;
  answer.chip = is_below ? "below the mean" : "may be chance";
  return answer;
}

Answer most_confused(const Evaluation& result) {
  Answer answer{.id = "confusion",
                .question = "What is confused most?",
                .certainty = Certainty::decided,
                .chip = "counted",
                .figure = "0",
                .unit = "images",
                .sentence = "Every image is right.",
                .evidence = kConfusion};
  if (result.confusions.empty()) return answer;
  const auto& most = result.confusions.front();
  const auto& label = result.classes[most.label];
  answer.figure = integer(most.samples);
  answer.unit = most.samples == 1 ? "image" : "images";
  answer.sentence =
      fmt::format("{} taken for {}: {} of its images.", label.name, result.classes[most.predicted].name,
                  about(static_cast<double>(most.samples) / static_cast<double>(label.samples)));
  return answer;
}

Answer mistakes_of(const Record& record) {
  const auto& evaluation = *record.evaluation;
  Answer answer{.id = "mistakes",
                .question = "How many mistakes?",
                .certainty = Certainty::decided,
                .chip = "counted",
                .figure = integer(evaluation.samples - evaluation.correct),
                .unit = "of " + counted(evaluation.samples, "image"),
                .sentence = "Every image is right."};
  if (evaluation.mistakes.empty()) {
    if (evaluation.correct < evaluation.samples) answer.sentence = "None of them is listed: `--mistakes 10`.";
    return answer;
  }
  answer.evidence = kMistakes;
  answer.sentence = fmt::format("The most confident one has probability {}.",
                                percent(evaluation.mistakes.front().probability));
  return answer;
}

Next steps_after_evaluation(const Record& record) {
  Next next;
  const auto directory = std::filesystem::path(record.evaluation->checkpoint).parent_path().string();
  if (!directory.empty())
    next.steps.push_back({.title = "See the training's curves",
                          .why = "Where it stopped gaining, and what its time went to.",
                          .command = "paceline report " + base::shell_word(directory) + " --html page.html"});
  if (!record.settings.contains("test-time-augmentation") && !record.command.empty())
    next.steps.push_back(
        {.title = "Evaluate each image and its mirror image",
         .why =
             "Where a mirrored image keeps its class, as photographs do and digits do not, this often gains some "
             "tenths of a point, at twice the time of an evaluation.",
         .command = into_a_new_directory(record.command) + " --test-time-augmentation flip"});
  next.not_answered.emplace_back("Whether another training would reach the same: one was evaluated.");
  if (record.data.synthetic) next.not_answered.emplace_back("What real images would give: these are drawn.");
  return next;
}

}  // namespace

Section answer_of_evaluation(const Record& record, Section& details) {
  const auto result = analysis::evaluation(*record.evaluation);
  Section section{.id = kAnswerSection, .title = "Answer"};
  section.blocks.emplace_back(accuracy_reached(record, result));
  section.blocks.emplace_back(worst_class(result));
  section.blocks.emplace_back(most_confused(result));
  section.blocks.emplace_back(mistakes_of(record));
  const auto is_drawn = [](const Block& block) {
    return std::holds_alternative<Heatmap>(block) || std::holds_alternative<Gallery>(block);
  };
  for (Block& block : details.blocks)
    if (is_drawn(block)) section.blocks.push_back(block);
  std::erase_if(details.blocks, is_drawn);
  section.blocks.emplace_back(steps_after_evaluation(record));
  return section;
}

}  // namespace paceline::report
