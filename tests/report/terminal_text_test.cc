// The grid of the terminal's last lines, as narrow as the terminal may be: the cell that is the answer is in
// it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/terminal_text.h"

namespace paceline::report {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Ten global batches, 16 to 8,192, with images/s that begin with 1,001; the cell at `best` is the answer.
Document answered(double best) {
  Figure hero{.id = "hero",
              .finding = "",
              .note = "",
              .views = {{.name = "images/s", .x = {.label = "global batch"}}}};
  Series way{.name = "2 workers"};
  double speed = 1001;
  for (double batch = 16; batch <= 8192; batch *= 2)
    way.points.push_back({.x = batch, .y = speed++, .mark = batch == best ? "best" : ""});
  hero.views.front().series.push_back(way);
  Document document;
  document.sections.push_back({.id = kAnswerSection, .title = "", .blocks = {hero}});
  return document;
}

std::string at(double best, int width) { return answer_screen(answered(best), {.width = width}); }

TEST(AnswerScreen, ShowsAllBatchesWhereThereIsRoom) {
  for (const char* batch : {" 16", " 8,192"}) EXPECT_THAT(at(64, 140), HasSubstr(batch));
}

TEST(AnswerScreen, ShowsTheAnswersBatchHoweverNarrowItIs) {
  for (const int width : {60, 80, 100}) {
    EXPECT_THAT(at(8192, width), HasSubstr("8,192")) << width;
    EXPECT_THAT(at(8192, width), HasSubstr("1,010")) << width;
    EXPECT_THAT(at(8192, width), Not(HasSubstr(" 16 "))) << width;
    EXPECT_THAT(at(16, width), HasSubstr(" 16")) << width;
    EXPECT_THAT(at(16, width), Not(HasSubstr("8,192"))) << width;
    EXPECT_THAT(at(0, width), HasSubstr(" 16")) << width << ": no answer, the first ones";
  }
}

}  // namespace
}  // namespace paceline::report
