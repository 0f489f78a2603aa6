#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "report/compress.h"
#include "report/document.h"
#include "report/golden.h"
#include "report/page.h"
#include "report/sample.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using testing::HasSubstr;
using testing::Not;

const Table& weak_table(const Document& document) { return std::get<Table>(document.sections[3].blocks[0]); }

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

TEST(Markdown, HasOneTableALineEachRow) { expect_golden("sample-report.md", to_markdown(sample_document())); }

TEST(Markdown, KeepsAPipeInsideItsCell) {
  Document document;
  document.facts = {{"command", "a | b"}};
  EXPECT_THAT(to_markdown(document), HasSubstr("| command | a \\| b |"));
}

// Who draws a plot again had the page's fold to copy from.
TEST(Csv, HasThePointsOfAPlot) {
  Plot plot{.x = {.label = "epoch"}, .y = {.label = "test accuracy", .unit = "%"}};
  plot.series = {{.name = "lr 0.1, warm-up", .points = {{.x = 1, .y = 40.5, .low = 40, .high = 41}}},
                 {.name = "b", .points = {{.x = 2, .y = 7, .mark = "emulated"}}}};
  EXPECT_EQ(
      to_csv(plot),
      "series,epoch,test accuracy [%],low,high,mark\n\"lr 0.1, warm-up\",1,40.5,40,41,\nb,2,7,,,emulated\n");
  plot.kind = PlotKind::stacked_bar;
  plot.categories = {"b 32, N 1"};
  EXPECT_THAT(to_csv(plot), HasSubstr("b,\"b 32, N 1\",7,,,emulated\n"));
}

TEST(Csv, KeepsValuesInTheirUnitAndIntervalsInColumns) {
  const Document document = sample_document();
  expect_golden("sample-scale-weak-time.csv", to_csv(weak_table(document)));
}

TEST(Csv, QuotesWhatHoldsACommaOrAQuote) {
  const Table table{.columns = {{.key = "what"}}, .rows = {{TableCell{.text = "a, \"b\""}}}};
  EXPECT_EQ(to_csv(table), "what\n\"a, \"\"b\"\"\"\n");
}

TEST(Html, CarriesTheWholeReportInThePage) {
  const std::string html = to_html(sample_document());
  const std::size_t begin = html.find('>', html.find("application/json")) + 1;
  const std::size_t end = html.find("</script", begin);
  ASSERT_NE(end, std::string::npos);
  const auto data = html.substr(begin, end - begin);
  // The page that stands in for the built one reads plain JSON only.
  if (page_is_built())
    EXPECT_EQ(data, compressed(to_json(sample_document())));
  else
    EXPECT_EQ(nlohmann::json::parse(data), nlohmann::json::parse(to_json(sample_document())));
}

TEST(Html, CannotBeLeftByTextOfTheReport) {
  const std::string page = "<html><script id=paceline-data type=\"application/json\"></script></html>";
  const std::string html = fill_page(page, R"({"text": "</script><script>alert(1)</script><!--"})");
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(html.find("</script>"), html.rfind("</script>"));
  EXPECT_THAT(html, HasSubstr("\\u003c/script>"));
}

TEST(Html, FindsItsPlaceHoweverTheTagIsSpelled) {
  for (const char* tag : {"<script id=\"paceline-data\" type=\"application/json\">",
                          "<script type=application/json id=paceline-data>"})
    EXPECT_THAT(fill_page(fmt::format("<script>var a = 'paceline-data';</script>{}</script>", tag), "{}"),
                HasSubstr(fmt::format("{}{{}}</script>", tag)));
}

}  // namespace
}  // namespace paceline::report
