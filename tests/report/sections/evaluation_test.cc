#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/build.h"

namespace paceline::report {
namespace {

using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Record evaluated(int classes) {
  Record record;
  record.kind = "evaluate";
  record.data.test_samples = 10 * classes;
  auto& evaluation = record.evaluation.emplace();
  evaluation.checkpoint = "best.safetensors";
  evaluation.samples = evaluation.reads = 10 * classes;
  evaluation.confusion.assign(static_cast<std::size_t>(classes),
                              std::vector<std::int64_t>(static_cast<std::size_t>(classes), 0));
  for (int i = 0; i < classes; ++i) {
    evaluation.classes.push_back("class" + std::to_string(i));
    const auto at = static_cast<std::size_t>(i);
    evaluation.confusion[at][at] = 8;
    evaluation.confusion[at][(at + 1) % static_cast<std::size_t>(classes)] += 2;
  }
  evaluation.correct = evaluation.correct_in_5 = 8 * classes;
  evaluation.mistakes = {{.index = 3, .path = "cats/17.png", .label = 0, .predicted = 1, .probability = 0.99},
                         {.index = 4, .path = {}, .label = 1, .predicted = 0, .probability = 0.5}};
  return record;
}

std::string evaluation_text(const std::vector<Record>& records) {
  return to_terminal(build(records, {.title = "", .command = ""}), 200);
}

TEST(EvaluationSection, ShowsClassesConfusionsAndMistakes) {
  EXPECT_THAT(evaluation_text({evaluated(3)}),
              AllOf(HasSubstr("80.0 % [62.7, 90.5]"), HasSubstr("Confusion matrix"), HasSubstr("cats/17.png"),
                    HasSubstr("number 4"), HasSubstr("99.0 %"), Not(HasSubstr("Not measured"))));
}

TEST(EvaluationSection, OfManyClassesShowsTheMostFrequentConfusionsInsteadOfAMatrix) {
  EXPECT_THAT(evaluation_text({evaluated(30)}),
              AllOf(HasSubstr("The most frequent confusions"), Not(HasSubstr("Confusion matrix"))));
}

TEST(EvaluationSection, LeavesOutWhatContradictsItself) {
  auto record = evaluated(3);
  record.evaluation->confusion[0][0] = 80;
  EXPECT_THAT(evaluation_text({record}),
              AllOf(HasSubstr("left out, it contradicts itself"), Not(HasSubstr("Accuracy by class"))));
}

}  // namespace
}  // namespace paceline::report
