#include "cli/commands/assign_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paceline::cli {
namespace {

ProcessInfo on(const std::string& host, std::vector<int> cores) {
  const int usable = static_cast<int>(cores.size());
  return {.host = host, .cores = std::move(cores), .usable = usable};
}

TEST(CoresEach, AreThoseOfOneProcessSharedOut) {
  const std::vector alone{on("a", {0, 1, 2, 3})};
  EXPECT_EQ(cores_each(1, alone), 4);
  EXPECT_EQ(cores_each(2, alone), 2);
  EXPECT_EQ(cores_each(3, alone), 1);
  EXPECT_EQ(cores_each(8, alone), 0);
}

TEST(CoresEach, OfProcessesThatAreBoundAddUp) {
  const std::vector bound{on("a", {0}), on("a", {1}), on("b", {0}), on("b", {1})};
  for (const int workers : {1, 2, 4}) EXPECT_EQ(cores_each(workers, bound), 1) << workers;
  EXPECT_EQ(cores_each(8, bound), 0);
  EXPECT_EQ(cores_each(6, bound), 0) << "6 workers do not divide by 4 processes";
}

TEST(CoresEach, OfProcessesThatMayUseTheSameOnesAreSharedOut) {
  const std::vector sharing{on("a", {0, 1, 2, 3}), on("a", {0, 1, 2, 3})};
  EXPECT_EQ(cores_each(1, sharing), 4) << "the other one has nothing to do";
  EXPECT_EQ(cores_each(2, sharing), 2);
  EXPECT_EQ(cores_each(4, sharing), 1);
}

TEST(CoresEach, AreThoseOfTheProcessWithTheFewest) {
  EXPECT_EQ(cores_each(2, std::vector{on("a", {0, 1, 2, 3}), on("b", {0})}), 1);
  ProcessInfo limited = on("a", {0, 1, 2, 3});
  limited.usable = 2;  // a cgroup's quota
  EXPECT_EQ(cores_each(1, std::vector{limited}), 2);
}

TEST(WorkersForConvergence, AreTheMostThatHaveCoresOfTheirOwn) {
  const auto workers = [](const std::vector<ProcessInfo>& members) {
    return workers_for_convergence({1, 2, 4}, [&](int count) { return cores_each(count, members); });
  };
  EXPECT_EQ(workers({on("a", {0, 1})}), 2);
  EXPECT_EQ(workers({on("a", {0}), on("a", {1})}), 2) << "each sees one core";
  EXPECT_EQ(workers({on("a", {0}), on("b", {0}), on("c", {0})}), 2) << "4 do not divide by 3 processes";
  EXPECT_EQ(workers({on("a", {0}), on("a", {0})}), 1) << "they share one core";
}

}  // namespace
}  // namespace paceline::cli
