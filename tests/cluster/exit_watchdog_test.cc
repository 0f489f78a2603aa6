#include "cluster/exit_watchdog.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <utility>

namespace paceline::cluster {
namespace {

TEST(TimeToEnd, IsTwentySecondsOrThoseOfTheVariable) {
  using std::chrono::seconds;
  ::unsetenv("PACELINE_END_WITHIN");
  EXPECT_EQ(time_to_end(), seconds(20));
  for (const auto& [text, wanted] :
       {std::pair{"4", 4}, {"1", 1}, {"0", 20}, {"-3", 20}, {"soon", 20}, {"", 20}}) {
    ::setenv("PACELINE_END_WITHIN", text, 1);
    EXPECT_EQ(time_to_end(), seconds(wanted)) << text;
  }
  ::unsetenv("PACELINE_END_WITHIN");
}

}  // namespace
}  // namespace paceline::cluster
