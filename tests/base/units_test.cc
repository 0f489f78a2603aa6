#include "base/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace paceline::base {
namespace {

TEST(Units, MultiplyByTheFactorOfTheUnit) {
  EXPECT_DOUBLE_EQ(number_in_units("50us", kSecondUnits), 50e-6);
  EXPECT_DOUBLE_EQ(number_in_units("1.5s", kSecondUnits), 1.5);
  EXPECT_DOUBLE_EQ(number_in_units("10Gbit/s", kByteRateUnits), 1.25e9);
  EXPECT_DOUBLE_EQ(number_in_units("0GB/s", kByteRateUnits), 0);
}

TEST(Units, RefuseWhatIsNoNumberWithUnit) {
  for (const char* wrong : {"", "5", "us", "-1us", "infs", "nans", "1e999s", "5 us", "5US", "0x5s"})
    EXPECT_THROW((void)number_in_units(wrong, kSecondUnits), Error) << wrong;
  try {
    (void)number_in_units("5min", kSecondUnits);
    FAIL() << "minutes";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("has '5min', which is not a number with one of the units ns, us, ms, s"));
  }
}

TEST(Units, GiveEachPartAndNameTheForm) {
  std::vector<std::string> seen;
  const auto take = [&](std::string_view key, std::string_view value) {
    seen.push_back(std::string(key) + ":" + std::string(value));
    return key != "other";
  };
  each_part("a=1,b=", "a=1", take);
  each_part("", "a=1", take);
  EXPECT_EQ(seen, (std::vector<std::string>{"a:1", "b:"}));
  for (const char* wrong : {"a", "a=1,,b=2", "other=1"})
    EXPECT_THROW(each_part(wrong, "a=1", take), Error) << wrong;
}

}  // namespace
}  // namespace paceline::base
