#include "base/visible.h"

#include <gtest/gtest.h>

namespace paceline::base {
namespace {

TEST(Visible, LeavesWordsOfAllLanguages) {
  for (const char* text : {"", "plain words, 12.3 %", "Grüße", "日本語", "🙂", "a | b <c> [d](e)"})
    EXPECT_EQ(visible(text), text);
}

TEST(Visible, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(visible("\x1b[2J\x07"), "\\x1b[2J\\x07");
  EXPECT_EQ(visible("a\x7f\r"), "a\\x7f\\x0d");
  EXPECT_EQ(visible("\u009b2J"), "\\u009b2J") << "CSI in one code point";
  EXPECT_EQ(visible("\u202egnp.exe"), "\\u202egnp.exe");
  EXPECT_EQ(visible(std::string_view("\0", 1)), "\\x00");
}

TEST(Visible, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(visible("\x9b"), "\\x9b");
  EXPECT_EQ(visible("\xc3"), "\\xc3") << "cut short";
  EXPECT_EQ(visible("\xc0\x9b"), "\\xc0\\x9b") << "longer than it need be";
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half a pair";
  EXPECT_EQ(visible("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

TEST(Visible, KeepsLinesWhereTheyAreWanted) {
  EXPECT_EQ(visible("a\n\tb"), "a  b");
  EXPECT_EQ(visible("a\n\tb", true), "a\n\tb");
}

}  // namespace
}  // namespace paceline::base
