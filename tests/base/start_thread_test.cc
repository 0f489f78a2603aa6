#include "base/start_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

namespace paceline::base {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::system_error kRefusal(std::make_error_code(std::errc::resource_unavailable_try_again));

TEST(StartThread, ARefusalIsToldFromOtherErrors) {
  EXPECT_TRUE(is_refused_thread(kRefusal));
  EXPECT_FALSE(is_refused_thread(std::system_error(std::make_error_code(std::errc::invalid_argument))));
}

TEST(StartThread, ARefusalNamesTheLimitsThatAreSetAndWhatToDo) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NPROC, &before), 0);
  const rlimit lowered{std::min<rlim_t>(before.rlim_max, 4321), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &lowered), 0);  // for the threads to come, and there are none
  const auto refused = refused_thread("computing thread 3 of 4", kRefusal, {.threads = 64});
  ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &before), 0);

  EXPECT_EQ(refused.kind(), ErrorKind::device);
  EXPECT_THAT(refused.what(), testing::StartsWith("computing thread 3 of 4 could not be started: "));
  EXPECT_THAT(refused.what(), HasSubstr("ulimit -u " + std::to_string(lowered.rlim_cur) + " "));
  EXPECT_THAT(refused.what(), HasSubstr("pids.max 64 "));
  EXPECT_THAT(refused.what(), HasSubstr("--workers, --threads, --loader-threads"));
  EXPECT_THAT(refused_thread("a thread", kRefusal, {}).what(), Not(HasSubstr("pids.max")));
}

}  // namespace
}  // namespace paceline::base
