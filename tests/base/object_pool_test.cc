#include "base/object_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace paceline::base {
namespace {

struct Counted {
  std::atomic<int> users{0};
  int uses = 0;
};

TEST(ObjectPool, GivesAnObjectBackWithItsState) {
  ObjectPool<Counted> pool;
  Counted* first = nullptr;
  {
    const auto lease = pool.acquire();
    first = &*lease;
    lease->uses = 7;
  }
  const auto again = pool.acquire(), other = pool.acquire();
  EXPECT_EQ(&*again, first);
  EXPECT_EQ(again->uses, 7);
  EXPECT_NE(&*other, first);
  EXPECT_EQ(other->uses, 0);
}

TEST(ObjectPool, NeverGivesOneObjectToTwoThreads) {
  ObjectPool<Counted> pool;
  std::atomic<int> shared{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 2000; ++i) {
          const auto lease = pool.acquire();
          if (lease->users++ != 0) ++shared;
          ++lease->uses;
          --lease->users;
        }
      });
  }
  EXPECT_EQ(shared, 0);
  // All uses are in at most four objects: the pool makes no more than are in use at once.
  int uses = 0;
  {
    const auto a = pool.acquire(), b = pool.acquire(), c = pool.acquire(), d = pool.acquire();
    uses = a->uses + b->uses + c->uses + d->uses;
  }
  EXPECT_EQ(uses, 4 * 2000);
}

}  // namespace
}  // namespace paceline::base
