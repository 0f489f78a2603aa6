#include "data/prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "fakes.h"

namespace paceline::data {
namespace {

constexpr ImageFormat kFormat{.height = 2, .width = 2, .channels = 1};

/// Batch n has n % batch + 1 samples; sample i of it has the label 1000 n + i.
PrefetchOptions numbered(std::int64_t batch, int threads, int prefetch) {
  return {.format = kFormat,
          .batch = batch,
          .threads = threads,
          .prefetch = prefetch,
          .samples = [batch](std::int64_t number) { return number % batch + 1; },
          .prepare =
              [](std::int64_t number, std::int64_t i, std::span<std::uint8_t>, std::span<float> dst) {
                for (auto& value : dst) value = static_cast<float>(1000 * number + i);
                return static_cast<std::int32_t>(1000 * number + i);
              }};
}

TEST(Prefetch, YieldsBatchesInOrderAndWholeForAnyThreadsAndDepth) {
  for (const std::int64_t batch : {1, 15, 16, 17, 50})
    for (const int threads : {1, 2, 5})
      for (const int depth : {1, 2, 7}) {
        Prefetch prefetch(numbered(batch, threads, depth));
        for (std::int64_t n = 0; n < 60; ++n) {
          const auto view = prefetch.next();
          ASSERT_EQ(view.number, n);
          ASSERT_EQ(static_cast<std::int64_t>(view.labels.size()), n % batch + 1);
          ASSERT_EQ(view.images.size(), view.labels.size() * 4);
          for (std::size_t i = 0; i < view.labels.size(); ++i) {
            ASSERT_EQ(view.labels[i], 1000 * n + static_cast<std::int64_t>(i));
            for (std::size_t j = 0; j < 4; ++j)
              ASSERT_EQ(view.images[4 * i + j], static_cast<float>(view.labels[i]));
          }
        }
      }
}

// num_workers = 0: the reader's own thread, one batch, nothing ahead.
TEST(Prefetch, WithoutThreadsTheReaderPreparesWhatItAsksFor) {
  for (const std::int64_t batch : {1, 16, 50}) {
    auto options = numbered(batch, 0, 0);
    std::vector<std::int64_t> prepared;
    const auto reader = std::this_thread::get_id();
    const auto prepare = options.prepare;
    options.prepare = [&, prepare](auto number, auto i, auto scratch, auto dst) {
      EXPECT_EQ(std::this_thread::get_id(), reader);
      prepared.push_back(number);
      return prepare(number, i, scratch, dst);
    };
    Prefetch prefetch(options);
    EXPECT_TRUE(prepared.empty());
    for (std::int64_t n = 0; n < 30; ++n) {
      const auto view = prefetch.next();
      ASSERT_EQ(view.number, n);
      ASSERT_EQ(static_cast<std::int64_t>(view.labels.size()), n % batch + 1);
      for (std::size_t i = 0; i < view.labels.size(); ++i)
        ASSERT_EQ(view.images[4 * i], static_cast<float>(1000 * n + static_cast<std::int64_t>(i)));
      EXPECT_EQ(prepared.back(), n);
    }
    const auto statistics = prefetch.statistics();
    EXPECT_EQ(statistics.batches, 30);
    EXPECT_EQ(statistics.waits, 30);
    EXPECT_EQ(statistics.ready, 0);
    EXPECT_EQ(statistics.wait_s, statistics.prepare_s);
  }
}

TEST(Prefetch, WithoutThreadsAnErrorComesFromNext) {
  auto options = numbered(20, 0, 0);
  options.prepare = [](auto number, auto i, auto, auto) -> std::int32_t {
    if (number == 1 && i >= 0) throw std::runtime_error("sample " + std::to_string(i));
    return 0;
  };
  Prefetch prefetch(options);
  (void)prefetch.next();
  for (int again = 0; again < 2; ++again) {
    try {
      (void)prefetch.next();
      ADD_FAILURE() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "sample 0");
    }
  }
}

// An evaluation without threads of its own beside a loader that has none either.
TEST(Prefetch, InAPoolWithoutThreadsEachReaderPreparesItsOwn) {
  LoaderPool pool;
  auto options = numbered(20, 0, 2);
  options.pool = &pool;
  Prefetch one(options), two(options);
  for (std::int64_t n = 0; n < 5; ++n) {
    EXPECT_EQ(one.next().number, n);
    EXPECT_EQ(two.next().number, n);
  }
}

TEST(Prefetch, PreparesAsFarAheadAsToldAndNoFurther) {
  std::atomic<int> prepared = 0;
  auto options = numbered(10, 3, 4);
  options.samples = [](std::int64_t) { return 10; };
  options.prepare = [&](auto, auto, auto, auto) { return prepared++; };
  Prefetch prefetch(options);
  prefetch.wait_until_prepared();
  EXPECT_EQ(prepared, 50);  // 4 ahead and the one that the reader will hold
  (void)prefetch.next();    // the reader holds batch 0: nothing is handed back yet
  prefetch.wait_until_prepared();
  EXPECT_EQ(prepared, 50);
  (void)prefetch.next();
  prefetch.wait_until_prepared();
  EXPECT_EQ(prepared, 60);
}

TEST(Prefetch, CountsNoWaitForABatchThatIsReady) {
  Prefetch prefetch(numbered(8, 2, 3));
  for (int i = 0; i < 20; ++i) {
    prefetch.wait_until_prepared();
    (void)prefetch.next();
  }
  const auto statistics = prefetch.statistics();
  EXPECT_EQ(statistics.batches, 20);
  EXPECT_EQ(statistics.waits, 0);
  EXPECT_EQ(statistics.wait_s, 0);
  EXPECT_GT(statistics.prepare_s, 0);
  EXPECT_GT(statistics.processor_s, 0);
}

// The preparing thread goes on only once the reader is seen to wait, so the wait cannot be missed.
TEST(Prefetch, CountsTheWaitForABatchThatIsNot) {
  std::atomic<Prefetch*> shared = nullptr;
  auto options = numbered(1, 1, 1);
  options.prepare = [&](auto number, auto, auto, auto) {
    if (number == 0)
      while (shared.load() == nullptr || !shared.load()->is_waiting()) std::this_thread::yield();
    return 0;
  };
  Prefetch prefetch(options);
  shared = &prefetch;
  (void)prefetch.next();
  EXPECT_EQ(prefetch.statistics().waits, 1);
  EXPECT_GT(prefetch.statistics().wait_s, 0);
  prefetch.wait_until_prepared();
  (void)prefetch.next();
  EXPECT_EQ(prefetch.statistics().waits, 1);
}

TEST(Prefetch, ThrowsWhatPreparingThrewAtThatBatchAndAfter) {
  for (const int threads : {1, 2, 4}) {
    auto options = numbered(100, threads, 3);
    options.samples = [](std::int64_t) { return 100; };
    options.prepare = [](std::int64_t number, std::int64_t i, auto, auto) -> std::int32_t {
      if (number == 2 && i >= 40) throw std::runtime_error("sample " + std::to_string(i));
      return 0;
    };
    Prefetch prefetch(options);
    EXPECT_EQ(prefetch.next().number, 0);
    EXPECT_EQ(prefetch.next().number, 1);
    for (int again = 0; again < 2; ++again) {
      try {
        (void)prefetch.next();
        FAIL() << "batch 2 cannot be prepared";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "sample 40");  // the first bad one, whichever thread met one first
      }
    }
  }
}

// A batch of a million samples is under way when the object goes: the thread stops after the sample it is at.
TEST(Prefetch, StopsWithinABatch) {
  std::atomic<std::int64_t> prepared = 0;
  constexpr std::int64_t kMany = 1'000'000;
  auto options = numbered(kMany, 2, 1);
  options.samples = [](std::int64_t) { return kMany; };
  options.prepare = [&](auto, auto, auto, auto) {
    std::this_thread::yield();
    return static_cast<std::int32_t>(prepared++);
  };
  {
    const Prefetch prefetch(options);
    while (prepared == 0) std::this_thread::yield();
  }
  EXPECT_LT(prepared, kMany);
}

TEST(Prefetch, StopsBeforeAnythingWasAskedFor) {
  for (int i = 0; i < 200; ++i) const Prefetch prefetch(numbered(3, 3, 2));
}

/// Spins until `done` holds; false after ten seconds.
template <typename Condition>
bool comes_true(Condition done) {
  for (const auto begin = base::Clock::now(); base::seconds_since(begin) < 10; std::this_thread::yield())
    if (done()) return true;
  return false;
}

// The one thread of the first ring is held at its first sample until somebody has prepared the ring's
// second piece: only a thread of the second ring can.
TEST(LoaderPool, AThreadWhoseOwnRingIsFullHelpsAnother) {
  LoaderPool pool;
  std::atomic<bool> helped = false;
  auto slow = numbered(32, 1, 1);
  slow.pool = &pool;
  slow.samples = [](std::int64_t) { return 32; };
  slow.prepare = [&](std::int64_t number, std::int64_t i, auto, auto) {
    if (number == 0 && i == 16) helped = true;
    if (number == 0 && i == 0) {
      EXPECT_TRUE(comes_true([&] { return helped.load(); })) << "nobody helped";
    }
    return 0;
  };
  auto fast = numbered(4, 1, 1);
  fast.pool = &pool;
  const Prefetch other(fast);
  Prefetch held(slow);
  EXPECT_EQ(held.next().number, 0);
}

// The helper is at the first of eight batches of its own when the other's reader begins to wait.
TEST(LoaderPool, AWaitingReaderGoesBeforeRoomAtHome) {
  LoaderPool pool;
  std::atomic<Prefetch*> shared = nullptr;
  const auto until_it_waits = [&] {
    EXPECT_TRUE(comes_true([&] { return shared.load() != nullptr && shared.load()->is_waiting(); }));
  };
  std::atomic<bool> helped = false, is_at_home = false;
  std::atomic<int> more_at_home = 0;
  auto slow = numbered(32, 1, 1);
  slow.pool = &pool;
  slow.samples = [](std::int64_t) { return 32; };
  slow.prepare = [&](std::int64_t number, std::int64_t i, auto, auto) {
    if (number == 0 && i == 16) {
      EXPECT_EQ(more_at_home, 0);
      helped = true;
    }
    if (number == 0 && i == 0) {
      until_it_waits();
      EXPECT_TRUE(comes_true([&] { return helped.load(); })) << "the waiting reader was left alone";
    }
    return 0;
  };
  auto busy = numbered(16, 1, 7);
  busy.pool = &pool;
  busy.samples = [](std::int64_t) { return 16; };
  busy.prepare = [&](std::int64_t number, std::int64_t i, auto, auto) {
    if (number == 0 && i == 0) {
      is_at_home = true;
      until_it_waits();
    }
    if (number > 0) ++more_at_home;
    return 0;
  };
  const Prefetch home(busy);
  EXPECT_TRUE(comes_true([&] { return is_at_home.load(); }));  // a thread may be slow to begin
  Prefetch held(slow);
  shared = &held;
  EXPECT_EQ(held.next().number, 0);
}

TEST(LoaderPool, WorksForARingWithoutThreads) {
  LoaderPool pool;
  auto idle = numbered(4, 2, 1);
  idle.pool = &pool;
  const Prefetch other(idle);
  auto without = numbered(50, 0, 2);
  without.pool = &pool;
  Prefetch prefetch(without);
  prefetch.wait_until_prepared();
  for (std::int64_t n = 0; n < 60; ++n) {
    const auto view = prefetch.next();
    ASSERT_EQ(view.number, n);
    for (std::size_t i = 0; i < view.labels.size(); ++i)
      ASSERT_EQ(view.labels[i], 1000 * n + static_cast<std::int64_t>(i));
  }
}

// Rings that come, go early and fail while others' threads are at their pieces; every batch is still whole.
// The images of every other reader are larger.
TEST(LoaderPool, GivesEveryReaderItsOwnBatchesWhoeverPreparesThem) {
  for (const int threads : {1, 3}) {
    LoaderPool pool;
    std::vector<std::jthread> readers;
    for (int reader = 0; reader < 6; ++reader)
      readers.emplace_back([&, reader] {
        for (int turn = 0; turn < 5; ++turn) {
          auto options = numbered(40, threads, 1 + reader % 3);
          options.pool = &pool;
          options.format.width *= 1 + reader % 2;
          const auto values = static_cast<std::size_t>(options.format.bytes());
          options.prepare = [reader, values](std::int64_t number, std::int64_t i,
                                             std::span<std::uint8_t> scratch, std::span<float> dst) {
            if (scratch.size() != values || dst.size() != values) throw std::logic_error("another size");
            if (reader == 5 && number == 7) throw std::runtime_error("bad");
            for (auto& value : dst) value = static_cast<float>(reader);
            return static_cast<std::int32_t>(1000 * number + i);
          };
          Prefetch prefetch(options);
          for (std::int64_t n = 0; n < 40; ++n) {
            if (reader == 5 && n == 7) {
              EXPECT_THROW((void)prefetch.next(), std::runtime_error);
              break;
            }
            const auto view = prefetch.next();
            ASSERT_EQ(view.number, n);
            for (std::size_t i = 0; i < view.labels.size(); ++i) {
              ASSERT_EQ(view.labels[i], 1000 * n + static_cast<std::int64_t>(i));
              ASSERT_EQ(view.images[values * i + values - 1], static_cast<float>(reader));
            }
          }
        }
      });
  }
}

TEST(Prefetch, CountsHowManyBatchesStoodReady) {
  Prefetch prefetch(numbered(8, 2, 3));
  for (int i = 0; i < 10; ++i) {
    prefetch.wait_until_prepared();
    (void)prefetch.next();
  }
  EXPECT_EQ(prefetch.statistics().ready, 10 * 3);
}

TEST(Prefetch, PlansTheMemoryOfItsSlots) {
  // 4 slots of 10 samples of 4 floats and a label, and 2 threads with one stored image each
  EXPECT_EQ(Prefetch::planned_bytes(kFormat, 10, 1, 2, 3), 4 * 10 * (4 * 4 + 4) + 2 * 4);
  EXPECT_EQ(Prefetch::planned_bytes(kFormat, 10, 6, 2, 3), 4 * 10 * (6 * 4 * 4 + 4) + 2 * 4);
  const std::int64_t five_huge_pages = std::int64_t{10} << 20, batch = 600000;  // 9.6 MB of images in a slot
  EXPECT_EQ(Prefetch::planned_bytes(kFormat, batch, 1, 2, 3), 4 * (five_huge_pages + 4 * batch) + 2 * 4);
}

}  // namespace
}  // namespace paceline::data
