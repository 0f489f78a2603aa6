#include "cli/screen.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(Broken, LinesEndBetweenWordsWithinTheWidth) {
  EXPECT_EQ(broken("where the time went: data 3 %", 12), "where the\ntime went:\ndata 3 %");
  EXPECT_EQ(broken("just twelve!", 12), "just twelve!");
  EXPECT_EQ(broken("", 12), "");
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

}  // namespace
}  // namespace paceline::cli
