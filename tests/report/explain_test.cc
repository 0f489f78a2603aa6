#include "report/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using testing::AllOf;
using testing::HasSubstr;

std::string explained(const std::vector<measure::Record>& records) {
  return to_terminal(explain(records), 10000);
}

TEST(Explain, FillsTheFormulasWithTheRecordsNumbers) {
  const std::string text = explained(study());
  EXPECT_THAT(text,
              HasSubstr("1. 2 workers, a core each, 128 images each: 178.1 [176.6, 178.9] images/s = 256 / "
                        "1,437 ms (median of 24 steps in 3 repeats)."));
  EXPECT_THAT(text, HasSubstr("Left out: 4 workers on 2 cores, 32 images each: 4 threads on 2 cores."));
  EXPECT_THAT(text, AllOf(HasSubstr("E = 1,337 [1,331, 1,344] ms / 1,437 [1,431, 1,450] ms = 93.0 %"),
                          HasSubstr("2 E = 1.86 [1.84, 1.87].")));
  EXPECT_THAT(text, HasSubstr("busbw = 1.22 x 2 (2 - 1) / 2 = 1.22"));
  EXPECT_THAT(text, HasSubstr("points to the baseline, standard error"));
}

TEST(Explain, SaysWhatWasNotMeasured) {
  const std::string text = explained({make_record({.kind = "sweep", .local_batch = 64})});
  EXPECT_THAT(text, HasSubstr("– not measured"));
  EXPECT_THAT(text, HasSubstr("Only 64 was measured in this way"));
}

TEST(Explain, HasASectionAStepOfEachModel) {
  auto other = make_record({.kind = "sweep", .local_batch = 64});
  other.model.name = "mnist-cnn";
  const Document document = explain(std::vector{make_record({.kind = "sweep", .local_batch = 64}), other});
  ASSERT_EQ(document.sections.size(), 14U);
  EXPECT_EQ(document.sections[7].title, "The operating point (mnist-cnn)");
}

}  // namespace
}  // namespace paceline::report
