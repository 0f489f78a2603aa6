#include "base/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace paceline::base {
namespace {

using testing::ElementsAre;

/// What `call` complains of; "" when it does not.
template <typename Call>
std::string complaint(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(Values, WholeNumbersAreWholeAndInRange) {
  EXPECT_EQ(complaint([] { (void)whole_number("18446744073709551615", 0); }),
            "must be a whole number from 0 to 9223372036854775807, got '18446744073709551615'");
  EXPECT_EQ(whole_number("128", 1), 128);
  EXPECT_EQ(whole_number("0", 0), 0);
  for (const char* bad : {"0", "-4", "1.5", "12x", "", " 3", "1e3"})
    EXPECT_THAT(complaint([&] { (void)whole_number(bad, 1); }),
                testing::AllOf(testing::HasSubstr("whole number of at least 1"), testing::HasSubstr(bad)))
        << bad;
  EXPECT_EQ(complaint([] { (void)whole_number("9", 1, 8); }), "must be a whole number from 1 to 8, got '9'");
}

TEST(Values, DecimalsAreFiniteAndInRange) {
  EXPECT_DOUBLE_EQ(decimal("0.1"), 0.1);
  EXPECT_DOUBLE_EQ(decimal("5e-4"), 5e-4);
  for (const char* bad : {"nan", "inf", "-0.1", "0.1.2", "ten", ""})
    EXPECT_NE(complaint([&] { (void)decimal(bad); }), "") << bad;
  EXPECT_EQ(complaint([] { (void)decimal("0", {.open_below = true}); }), "must be a number above 0, got '0'");
  EXPECT_EQ(complaint([] { (void)decimal("2", {.least = 0, .most = 1}); }),
            "must be a number of at least 0 and at most 1, got '2'");
}

TEST(Values, ListsHaveNoGapsAndNothingTwice) {
  EXPECT_THAT(whole_numbers("1,2, 4", 1, 10), ElementsAre(1, 2, 4));
  EXPECT_THAT(whole_numbers("7", 1, 10), ElementsAre(7));
  for (const char* bad : {"", ",", "1,,2", "1,", ",1", "1;2", "1,2,1", "1,0"})
    EXPECT_NE(complaint([&] { (void)whole_numbers(bad, 1, 10); }), "") << bad;
}

TEST(Values, AnUnknownChoiceNamesAllAndTheNearest) {
  const std::vector<std::string> names{"sgd", "adam", "lars"};
  EXPECT_EQ(one_of("adam", names), 1u);
  EXPECT_EQ(complaint([&] { (void)one_of("adm", names); }),
            "must be one of sgd, adam, lars, got 'adm'; did you mean 'adam'?");
  EXPECT_EQ(complaint([&] { (void)one_of("newton", names); }),
            "must be one of sgd, adam, lars, got 'newton'");
}

TEST(Values, DecimalsReadBackAsTheSame) {
  for (const double value : {0.1, 5e-4, 128.0, 1.0 / 3.0, 1e-8}) EXPECT_EQ(decimal(as_text(value)), value);
}

}  // namespace
}  // namespace paceline::base
