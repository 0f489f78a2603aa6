// Tasks of a thread of its own: in order, waited for, and errors told once.

#include "base/background_tasks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <vector>

namespace paceline::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

TEST(BackgroundTasks, RunOneAfterTheOtherInAnotherThread) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  BackgroundTasks tasks("a thread");
  EXPECT_TRUE(tasks.is_idle());
  for (int i = 0; i < 100; ++i)
    tasks.add([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
    });
  ASSERT_TRUE(tasks.wait_until_idle(minutes(1)));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(threads[static_cast<std::size_t>(i)], threads.front());
  }
  EXPECT_NE(threads.front(), std::this_thread::get_id());
}

TEST(BackgroundTasks, SayWhileTheyWork) {
  std::promise<void> may_end;
  BackgroundTasks tasks("a thread");
  tasks.add([&] { may_end.get_future().wait(); });
  EXPECT_FALSE(tasks.is_idle());
  EXPECT_FALSE(tasks.wait_until_idle(milliseconds(20)));
  EXPECT_GT(tasks.busy_s(), 0);
  may_end.set_value();
  ASSERT_TRUE(tasks.wait_until_idle(minutes(1)));
  EXPECT_EQ(tasks.busy_s(), 0);
}

TEST(BackgroundTasks, TellTheFirstErrorOnceAndGoOn) {
  std::atomic<int> done = 0;
  BackgroundTasks tasks("a thread");
  tasks.add([] { throw std::runtime_error("first"); });
  tasks.add([] { throw std::runtime_error("second"); });
  tasks.add([&] { ++done; });
  ASSERT_TRUE(tasks.wait_until_idle(minutes(1)));
  try {
    tasks.rethrow();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  tasks.rethrow();
  EXPECT_EQ(done, 1);
}

TEST(BackgroundTasks, AreDoneBeforeTheyGo) {
  std::atomic<int> done = 0;
  {
    BackgroundTasks tasks("a thread");
    for (int i = 0; i < 50; ++i) tasks.add([&] { ++done; });
  }
  EXPECT_EQ(done, 50);
}

}  // namespace
}  // namespace paceline::base
