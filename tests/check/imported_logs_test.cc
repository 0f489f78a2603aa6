/// Sound logs of other programs, mixed or with many columns, have no errors.

#include <gmock/gmock.h>

#include "check/check.h"
#include "table/import/files.h"
#include "table/import/nccl_lines.h"

namespace paceline::check {
namespace {

using table::fixtures::lines_of;
using table::fixtures::mixed;
using table::fixtures::text_of;

class ImportedLogs : public table::ImportedFiles {
 protected:
  /// The rules that find an error.
  std::vector<std::string> errors_in(const std::string& text) {
    std::vector<std::string> rules;
    for (const auto& finding : check_table(read(text)).findings)
      if (finding.severity == Severity::error) rules.push_back(finding.rule + ": " + finding.sentence);
    return rules;
  }
};

TEST_F(ImportedLogs, OfMixedRunsAreSound) {
  using testing::IsEmpty;
  const auto eight = lines_of({.ranks = 8});
  EXPECT_THAT(errors_in(mixed(eight, lines_of({.ranks = 8, .host = "node-b", .us = 101}))), IsEmpty());
  EXPECT_THAT(errors_in(mixed(eight, lines_of({.ranks = 4, .host = "node-b"}))), IsEmpty());
  EXPECT_THAT(errors_in(text_of(eight) + text_of(lines_of({.ranks = 8, .us = 102}))), IsEmpty());
  auto other = lines_of({.ranks = 8, .redop = "max", .us = 130});
  other.pop_back();
  auto both = eight;
  both.pop_back();
  EXPECT_THAT(errors_in(text_of(both) + text_of(other)), IsEmpty());
}

TEST_F(ImportedLogs, OfAWrongBandwidthAreNot) {
  auto lines = lines_of({.ranks = 8});
  auto& last = *(lines.end() - 3);  // its last busbw is algbw
  const auto at = last.rfind(' ', last.rfind(' ') - 1) + 1;
  last.replace(at, last.rfind(' ') - at, "10.49");
  EXPECT_THAT(errors_in(text_of(lines)), testing::Not(testing::IsEmpty()));
}

TEST_F(ImportedLogs, OfStepsAreNoConflict) {
  EXPECT_THAT(errors_in("step,loss,accuracy\n100,1.2,0.5\n200,0.8,0.6\n300,0.5,0.8\n"), testing::IsEmpty());
}

}  // namespace
}  // namespace paceline::check
