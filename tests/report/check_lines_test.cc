/// What `check` prints: findings first, few lines, no line wider than the terminal, and no green where
/// nothing was compared.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/build.h"

namespace paceline::report {
namespace {

using testing::HasSubstr;
using testing::Not;

check::Result result_of(const std::string& csv) {
  return check::one_per_mistake(check::check_table(table::read_table(csv, "t.csv")));
}

std::string check_text_of(const check::Result& result, const CheckText& options = {}) {
  return fmt::format("{}", fmt::join(check_lines(result, options), "\n"));
}

/// Many mistakes of many rules.
std::string long_table() {
  std::string csv =
      "# time_of = epoch\n# train_samples = 50000\n# parameters = 11173962\n# bandwidth_unit = \"GB/s\"\n"
      "run,workers,local_batch,global_batch,time_s,claimed_speedup,claimed_efficiency,compute_s,communication_s,"
      "claimed_bandwidth,rate_per_s,rate_of,steps,accuracy,loss,test_samples,warmup,utilisation,best,claim\n";
  for (int n = 1; n <= 64; n *= 2)
    csv += fmt::format(
        "n{0},{0},128,100,{1:.2f},{2},{2},{3:.2f},{4},0.00434,12,all,7,0.98765{0},31,10000,0,0,yes,is fast\n",
        n, 100.0 + n, n > 1 ? "7.77" : "", 90.0 + n, n > 1 ? "30.5" : "");
  return csv;
}

TEST(CheckLines, HasFewLinesAndNoneTooWide) {
  const auto result = result_of(long_table());
  ASSERT_GT(result.findings.size(), 9U);
  for (const std::size_t width : {60U, 80U, 100U, 140U}) {
    const auto lines =
        check_lines(result, {.width = width, .notes = {"t.csv: read as: " + std::string(700, 'x')}});
    EXPECT_LE(lines.size(), 25U) << width;
    for (const auto& line : lines) EXPECT_LE(line.size(), width) << line;
    EXPECT_THAT(lines.front(), testing::StartsWith("error ")) << "findings come first";
    EXPECT_THAT(fmt::format("{}", fmt::join(lines, "\n")), HasSubstr("more: --why shows them"));
  }
  EXPECT_LE(check_lines(result, {}).size(), 25U);
  EXPECT_THAT(check_text_of(result, {.shows_all = true}),
              HasSubstr("not checked, and the columns that would allow it"));
}

TEST(CheckLines, NamesTheRowsOfOneMistake) {
  const std::string csv =
      "run,workers,time_s,time_of,claimed_speedup\na,1,100.0,epoch,\nb,2,80.0,epoch,2.50\nc,4,70.0,epoch,5.71\n";
  EXPECT_THAT(check_text_of(result_of(csv)), HasSubstr("The same in c (5.71, 1.43) (printed, corrected)."));
  EXPECT_THAT(check_text_of(result_of(csv)), HasSubstr("1 error, 0 warnings"));
  EXPECT_THAT(check_json(result_of(csv)), HasSubstr("\"also\": [\n    {"));
}

TEST(CheckLines, LeavesOutAnIntervalWithoutWidth) {
  const std::string csv =
      "run,workers,message_bytes,time_s,time_of,claimed_bandwidth,bandwidth_unit,bandwidth_is\n"
      "a,4,1073741824,0.0075756,step,141.74,GB/s,busbw\n";
  EXPECT_THAT(check_text_of(result_of(csv)), HasSubstr("Corrected: 212.6."));
}

TEST(CheckLines, SaysThatNothingWasCompared) {
  const auto text = check_text_of(result_of("GPUs,time\n1,100\n2,55\n"));
  EXPECT_THAT(text, HasSubstr("nothing was compared"));
  EXPECT_THAT(text, Not(HasSubstr("0 errors")));
  EXPECT_THAT(text, HasSubstr("time_of (ratio.superlinear"));
}

/// What a column would have found is named also where the table looks right without it.
TEST(CheckLines, NamesTheRuleThatLacksOneColumn) {
  const auto text = check_text_of(result_of(
      "run,workers,local_batch,time_s,claimed_speedup,claimed_efficiency\na,1,8,100.0,,\nb,4,8,125.0,3.20,0.80\n"));
  EXPECT_THAT(text, HasSubstr("not checked for want of"));
  EXPECT_THAT(text, HasSubstr("ratio.speedup"));
  EXPECT_THAT(text, HasSubstr("this is no confirmation"));
}

}  // namespace
}  // namespace paceline::report
