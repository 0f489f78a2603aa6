#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "report/document.h"
#include "report/golden.h"
#include "report/sample.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Terminal, IsReadableAt110Columns) { expect_golden("sample-report.txt", to_terminal(sample_document())); }

TEST(Terminal, PutsIntervalsBelowFiguresWhereTheLineIsTooShort) {
  const std::string wide = to_terminal(sample_document(), 250);
  const std::string narrow = to_terminal(sample_document(), 100);
  EXPECT_THAT(wide, HasSubstr("369.0 [364.1, 372.2]"));
  EXPECT_THAT(narrow, Not(HasSubstr("369.0 [364.1, 372.2]")));
  EXPECT_THAT(narrow, HasSubstr("[364.1, 372.2]"));
}

TEST(Terminal, KeepsTextWithinTheWidth) {
  Document document = sample_document();
  for (Section& section : document.sections)
    std::erase_if(section.blocks, [](const Block& block) {
      return std::holds_alternative<Table>(block) || std::holds_alternative<Comparison>(block);
    });
  for (const int width : {60, 80, 140}) {
    std::istringstream lines(to_terminal(document, width));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(display_width(line), static_cast<std::size_t>(width)) << line;
  }
}

TEST(Terminal, IsColouredOnlyWhenAsked) {
  EXPECT_THAT(to_terminal(sample_document(), 110, false), Not(HasSubstr("\x1b[")));
  EXPECT_THAT(to_terminal(sample_document(), 110, true), HasSubstr("\x1b[1m"));
}

}  // namespace
}  // namespace paceline::report
