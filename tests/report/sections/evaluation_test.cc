#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/build.h"
#include "report/sections/evaluated.h"

namespace paceline::report {
namespace {

using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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
