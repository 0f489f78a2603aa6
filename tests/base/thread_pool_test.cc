#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <future>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"

namespace paceline::base {
namespace {

TEST(ThreadPool, DoesEveryItemOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
      pool.run(count, [&](int item, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++seen[static_cast<std::size_t>(item)];
      });
      for (const auto& times : seen) EXPECT_EQ(times, 1) << threads << " threads, " << count << " items";
    }
  }
}

TEST(ThreadPool, KeepsLoopsApartThatFollowEachOtherAtOnce) {
  // Short loops of changing length: a helper often wakes when its loop is over and the next one goes on.
  ThreadPool pool(4);
  std::int64_t sum = 0, want = 0;
  for (int loop = 0; loop < 20000; ++loop) {
    const int count = 1 + loop * 7 % 13;
    std::vector<int> values(static_cast<std::size_t>(count), -1);
    pool.run(count, [&](int item, int) { values[static_cast<std::size_t>(item)] = item + loop; });
    for (int item = 0; item < count; ++item) {
      sum += values[static_cast<std::size_t>(item)];
      want += item + loop;
    }
  }
  EXPECT_EQ(sum, want);
}

TEST(ThreadPool, LetsTheOthersWorkWhileOneIsHeldUp) {
  // Whoever has item 0 waits until all others are done: only possible if nobody waits for it meanwhile.
  ThreadPool pool(2);
  std::atomic<int> others{0};
  std::atomic<bool> late{false};
  pool.run(64, [&](int item, int) {
    if (item != 0) {
      ++others;
      return;
    }
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (others != 63 && !late) late = std::chrono::steady_clock::now() > give_up;
  });
  EXPECT_EQ(others, 63);
  EXPECT_FALSE(late);
}

TEST(ThreadPool, GivesEachThreadARangeOfNeighbours) {
  // No thread's first item ends before all have one: then it is the first of its own range.
  for (const int threads : {2, 3, 5}) {
    ThreadPool pool(threads);
    const int count = 8 * threads + 1;
    std::atomic<int> begun{0};
    std::atomic<bool> late{false};
    std::vector<std::vector<int>> items(static_cast<std::size_t>(threads));
    pool.run(count, [&](int item, int thread) {
      auto& taken = items[static_cast<std::size_t>(thread)];
      taken.push_back(item);
      if (taken.size() > 1) return;
      ++begun;
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (begun < threads && !late) late = std::chrono::steady_clock::now() > give_up;
    });
    ASSERT_FALSE(late) << threads;
    for (int thread = 0; thread < threads; ++thread) {
      const auto& taken = items[static_cast<std::size_t>(thread)];
      int next = ThreadPool::first_of(thread, threads, count);
      const int end = ThreadPool::first_of(thread + 1, threads, count);
      ASSERT_EQ(taken.front(), next);
      for (const int item : taken) {
        if (item < next || item >= end) break;  // what it takes from others comes after its own
        EXPECT_EQ(item, next++) << threads << " threads";
      }
    }
  }
}

TEST(ThreadPool, SleepsWhileThereIsNothingToDo) {
  ThreadPool pool(3);
  pool.run(8, [](int, int) {});
  const auto processor_time = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double before = processor_time();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(processor_time() - before, 0.1);  // helpers that spin would take 0.4 s, or all they can get
}

TEST(ThreadPool, ThrowsInTheCallerWhatAnItemThrew) {
  ThreadPool pool(2);
  for (int bad : {0, 5}) {
    std::atomic<int> done{0};
    EXPECT_THROW(pool.run(8,
                          [&](int item, int) {
                            ++done;
                            if (item == bad) throw std::runtime_error("bad item");
                          }),
                 std::runtime_error);
    EXPECT_EQ(done, 8);
  }
  std::atomic<int> after{0};
  pool.run(3, [&](int, int) { ++after; });
  EXPECT_EQ(after, 3);
}

TEST(ThreadPool, EndsTheHelpersItHasWhenTheSystemRefusesOne) {
  // It used to wait for ever: for helpers that wait for a loop.
  int started = 0;
  std::atomic<int> ended{0};
  const auto two_at_most = [&](std::function<void()> work) {
    if (started == 2)
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    ++started;
    return std::jthread([&ended, work = std::move(work)] {
      work();
      ++ended;
    });
  };
  try {
    ThreadPool pool(5, {}, two_at_most);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_THAT(error.what(), testing::StartsWith("computing thread 4 of 5 could not be started: "));
  }
  EXPECT_EQ(ended, 2);
}

TEST(ThreadPool, StartsEveryHelperOnce) {
  std::atomic<int> started{0};
  {
    ThreadPool pool(4, [&] { ++started; });
  }
  EXPECT_EQ(started, 3);
}

}  // namespace

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

// Tasks of a thread of its own: in order, waited for, and errors told once.

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
