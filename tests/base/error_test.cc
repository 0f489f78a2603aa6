#include "base/error.h"

#include <gtest/gtest.h>

namespace paceline::base {
namespace {

TEST(Error, CarriesItsKindAndItsSentence) {
  try {
    fail(ErrorKind::data, "{}: label {} at image {} is over {}", "x.bin", 12, 7, 9);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_STREQ(error.what(), "x.bin: label 12 at image 7 is over 9");
  }
}

TEST(ExpectsDeathTest, BrokenPreconditionEndsTheProcessAndNamesThePlace) {
  expects(true, "1 < 2");
  EXPECT_DEATH(expects(1 > 2, "1 > 2"), "a bug: 1 > 2 does not hold in .*error_test.cc");
}

}  // namespace
}  // namespace paceline::base
