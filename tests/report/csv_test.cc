#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/document.h"
#include "report/golden.h"
#include "report/sample.h"

namespace paceline::report {
namespace {

using testing::HasSubstr;

const Table& weak_table(const Document& document) { return std::get<Table>(document.sections[3].blocks[0]); }

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

}  // namespace
}  // namespace paceline::report
