#include "report/text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace paceline::report {
namespace {

TEST(Text, ShowsAFigureWithItsInterval) {
  const TableCell cell{.value = 12.34, .low = 12.08, .high = 12.61, .mark = "*"};
  EXPECT_EQ(one_line(cell_text(cell, Format::fixed1)), "12.3 [12.1, 12.6] *");
}

TEST(Text, ShowsASingleSampleWithoutInterval) {
  EXPECT_EQ(one_line(cell_text({.value = 12.34}, Format::fixed1)), "12.3");
}

TEST(Text, RoundsTheIntervalLikeTheFigure) {
  EXPECT_EQ(one_line(cell_text({.value = 10.2, .low = 9.87, .high = 104.0}, Format::seconds)),
            "10.2 [9.9, 104.0]");
}

TEST(Text, TurnsEveryFormatIntoItsUnit) {
  const auto show = [](double value, Format format) { return one_line(cell_text({.value = value}, format)); };
  EXPECT_EQ(show(1234567, Format::integer), "1,234,567");
  EXPECT_EQ(show(-1234567, Format::integer), "-1,234,567");
  EXPECT_EQ(show(999, Format::integer), "999");
  EXPECT_EQ(show(0.8714, Format::percent1), "87.1 %");
  EXPECT_EQ(show(-0.0001, Format::percent1), "0.0 %");
  EXPECT_EQ(show(0.369, Format::milliseconds), "369.0");
  EXPECT_EQ(show(44695848, Format::bytes), "44.7 MB");
  EXPECT_EQ(show(9.1e9, Format::bytes), "9.10 GB");
  EXPECT_EQ(show(0.000123, Format::scientific), "1.23e-04");
  EXPECT_EQ(show(0, Format::seconds), "0");
  EXPECT_EQ(show(0.0123, Format::seconds), "0.0123");
  EXPECT_EQ(show(0.000951, Format::seconds), "0.0010");
  EXPECT_EQ(show(0.00005, Format::seconds), "0.000050") << "and not twice as much";
  EXPECT_EQ(show(1.23, Format::seconds), "1.23");
  EXPECT_EQ(show(12.34, Format::rate), "12.3");
  EXPECT_EQ(show(123.45, Format::rate), "123.5");
  EXPECT_EQ(show(12345.6, Format::rate), "12,346");
}

TEST(Text, KeepsTheReasonWhereAFigureIsMissing) {
  EXPECT_EQ(one_line(cell_text({.text = "-", .note = "skipped"}, Format::seconds)), "-");
}

TEST(Text, PutsTheShownUnitIntoTheHeading) {
  EXPECT_EQ(heading({.label = "step", .unit = "s", .format = Format::milliseconds}), "step [ms]");
  EXPECT_EQ(heading({.label = "sent", .unit = "B", .format = Format::bytes}), "sent");
  EXPECT_EQ(heading({.label = "E", .unit = "", .format = Format::percent1}), "E");
}

TEST(Text, SaysDurationsAsPeopleDo) {
  EXPECT_EQ(duration(0.0000123), "12.3 us");
  EXPECT_EQ(duration(0.369), "369.0 ms");
  EXPECT_EQ(duration(12.34), "12.3 s");
  EXPECT_EQ(duration(1500), "25 min");
  EXPECT_EQ(duration(7500), "2 h 05 min");
  EXPECT_EQ(duration(1e300), "1e+300 s") << "more minutes than can be counted";
}

TEST(Text, SaysWhatIsAboutSoInTwoFigures) {
  EXPECT_EQ(rough(1899), "1,899") << "the unit's own digits stay";
  EXPECT_EQ(rough(190.4), "190");
  EXPECT_EQ(rough(9.96), "10");
  EXPECT_EQ(rough(9.94), "9.9");
  EXPECT_EQ(rough(0.996), "1.0");
  EXPECT_EQ(rough(0.557), "0.56");
  EXPECT_EQ(rough(0.0557), "0.0557");
  EXPECT_EQ(rough(0), "0");
}

TEST(Text, LeavesDecimalsOutThatSayNothing) {
  EXPECT_EQ(amount(1000), "1,000");
  EXPECT_EQ(amount(30), "30");
  EXPECT_EQ(amount(12.5), "12.5");
  EXPECT_EQ(amount(0.25), "0.25");
  EXPECT_EQ(amount(200), "200") << "not 2";
}

std::optional<Format> format_of(const std::string& word) {
  for (const Format format :
       {Format::text, Format::integer, Format::fixed1, Format::fixed2, Format::fixed3, Format::percent1,
        Format::seconds, Format::milliseconds, Format::bytes, Format::rate, Format::scientific})
    if (name(format) == word) return format;
  return std::nullopt;
}

// The page rounds by the same file: web/test/format.test.ts.
TEST(Text, RoundsAsThePageDoes) {
  std::ifstream file(PACELINE_SOURCE_DIR "/tests/golden/numbers.json");
  ASSERT_TRUE(file);
  const auto numbers = nlohmann::json::parse(file);
  EXPECT_GT(numbers.size(), 100U);
  for (const auto& one : numbers) {
    const auto format = format_of(one["format"]);
    ASSERT_TRUE(format) << one;
    EXPECT_EQ(cell_text({.value = one["value"].get<double>()}, *format).figure, one["text"]) << one;
  }
}

}  // namespace
}  // namespace paceline::report
