#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/document.h"
#include "report/golden.h"
#include "report/sample.h"

namespace paceline::report {
namespace {

using testing::HasSubstr;

TEST(Markdown, HasOneTableALineEachRow) { expect_golden("sample-report.md", to_markdown(sample_document())); }

TEST(Markdown, KeepsAPipeInsideItsCell) {
  Document document;
  document.facts = {{"command", "a | b"}};
  EXPECT_THAT(to_markdown(document), HasSubstr("| command | a \\| b |"));
}

}  // namespace
}  // namespace paceline::report
