#include "cli/screen/screen.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(Broken, LinesEndBetweenWordsWithinTheWidth) {
  EXPECT_EQ(broken("where the time went: data 3 %", 12), "where the\ntime went:\ndata 3 %");
  EXPECT_EQ(broken("just twelve!", 12), "just twelve!");
  EXPECT_EQ(broken("", 12), "");
}

TEST(Broken, CountsNoColours) {
  EXPECT_EQ(broken("\x1b[1mtwo words\x1b[0m here", 14), "\x1b[1mtwo words\x1b[0m here");
}

TEST(Broken, GoesOnBelowTheText) {
  EXPECT_EQ(broken("  host  a very long name of it", 24), "  host  a very long name\n        of it");
}

TEST(Broken, AWordLongerThanTheWidthStaysWhole) {
  // A path that is broken cannot be copied.
  EXPECT_EQ(broken("in a/very/long/path it is", 8), "in\na/very/long/path\nit is");
}

TEST(Broken, KeepsTheLinesAndBlanksThatAreThere) {
  EXPECT_EQ(broken("one\ntwo three", 8), "one\ntwo\nthree");
  EXPECT_EQ(broken("epoch 1  loss", 20), "epoch 1  loss");
  EXPECT_EQ(broken("  indented", 20), "  indented");
}

TEST(Broken, CountsLettersAndNotBytes) { EXPECT_EQ(broken("§§§§ §§§", 8), "§§§§ §§§"); }

Bar half_way() {
  return {.name = "scale",
          .done = 27,
          .all = 54,
          .doing = "weak 2 x 128, repeat 2",
          .rate = "34 ms/step",
          .elapsed_s = 41,
          .left_s = 19};
}

TEST(BarText, SaysWhatHowFarAndHowLong) {
  EXPECT_EQ(bar_text(half_way(), 110),
            " scale     ━━━━━━━━━━──────────  27/54  weak 2 x 128, repeat 2   34 ms/step   0:41 < 0:19");
  Bar unknown = half_way();
  unknown.left_s.reset();
  unknown.done = 0;
  EXPECT_EQ(bar_text(unknown, 110),
            " scale     ────────────────────  0/54  weak 2 x 128, repeat 2   34 ms/step   0:41");
}

TEST(BarText, DrawsHalfAColumn) {
  EXPECT_EQ(bar_text({.done = 1, .all = 40, .unit = "steps"}, 110),
            " ╸───────────────────  1/40 steps   0:00");
  EXPECT_EQ(bar_text({.done = 40, .all = 40}, 110), " ━━━━━━━━━━━━━━━━━━━━  40/40   0:00");
}

TEST(BarText, LeavesOutWhatIsLeastNeededWhereItWouldWrap) {
  EXPECT_EQ(bar_text(half_way(), 80), " scale     ━━━━━━━━━━──────────  27/54   34 ms/step   0:41 < 0:19");
  EXPECT_EQ(bar_text(half_way(), 60), " scale     ━━━━━━━━━━──────────  27/54   0:41 < 0:19");
  EXPECT_EQ(bar_text(half_way(), 20), " scale     ━━━━━━━━━");
}

TEST(BarLine, IsTheSameForALog) {
  EXPECT_EQ(bar_line(half_way()), "  scale     27/54  weak 2 x 128, repeat 2   68 %   0:41 < 0:19");
}

TEST(ClockText, CountsHoursWhereThereAreSome) {
  EXPECT_EQ(clock_text(41.4), "0:41");
  EXPECT_EQ(clock_text(59.6), "1:00");
  EXPECT_EQ(clock_text(4000), "1:06:40");
}

}  // namespace
}  // namespace paceline::cli
