#include "base/shell_word.h"

#include <gtest/gtest.h>

namespace paceline::base {
namespace {

TEST(ShellWord, IsQuotedWhereAShellWouldObeyIt) {
  for (const char* plain : {"resnet18-cifar", "mnist:/data/a,train=10", "~/runs/1", "0.1", "a@b%c+d"})
    EXPECT_EQ(shell_word(plain), plain);
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("x;reboot"), "'x;reboot'");
  EXPECT_EQ(shell_word("$(reboot)"), "'$(reboot)'");
  EXPECT_EQ(shell_word("a|b"), "'a|b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("a~b"), "'a~b'");
}

}  // namespace
}  // namespace paceline::base
