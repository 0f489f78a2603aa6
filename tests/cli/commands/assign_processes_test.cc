#include "cli/commands/assign_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paceline::cli {
namespace {

cluster::ProcessInfo on(const std::string& host, std::vector<int> cores) {
  const int usable = static_cast<int>(cores.size());
  return {.host = host, .cores = std::move(cores), .usable = usable};
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using train::Placement;

constexpr Placement kPacked[] = {Placement::packed};
constexpr Placement kBoth[] = {Placement::packed, Placement::spread};

int cores_each(int workers, const std::vector<cluster::ProcessInfo>& members) {
  return cli::cores_each(workers, kPacked, members);
}

/// a:3,b:3
std::vector<cluster::ProcessInfo> two_nodes() {
  return {on("a", {0}), on("a", {1}), on("a", {2}), on("b", {0}), on("b", {1}), on("b", {2})};
}

study::PlannedCell cell_of(int workers) {
  study::PlannedCell cell{.id = "w" + std::to_string(workers)};
  cell.options.workers = workers;
  return cell;
}

std::vector<std::string> ids(const std::vector<study::PlannedCell>& cells) {
  std::vector<std::string> all;
  for (const auto& cell : cells) all.push_back(cell.id);
  return all;
}

TEST(ProcessesFor, PackedFillANodeBeforeTheNext) {
  const auto members = two_nodes();
  EXPECT_THAT(processes_for(1, Placement::packed, members), ElementsAre(0));
  EXPECT_THAT(processes_for(2, Placement::packed, members), ElementsAre(0, 1));
  EXPECT_THAT(processes_for(4, Placement::packed, members), ElementsAre(0, 1, 2, 3));
  const std::vector in_turn{on("a", {0}), on("b", {0}), on("a", {1}), on("b", {1})};
  EXPECT_THAT(processes_for(2, Placement::packed, in_turn), ElementsAre(0, 2))
      << "as the launcher placed them";
}

TEST(ProcessesFor, SpreadAreSharedEvenly) {
  const auto members = two_nodes();
  EXPECT_THAT(processes_for(1, Placement::spread, members), ElementsAre(0));
  EXPECT_THAT(processes_for(2, Placement::spread, members), ElementsAre(0, 3));
  EXPECT_THAT(processes_for(3, Placement::spread, members), ElementsAre(0, 1, 3));
  EXPECT_THAT(processes_for(4, Placement::spread, members), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(processes_for(6, Placement::spread, members), ElementsAre(0, 1, 2, 3, 4, 5));
  const std::vector uneven{on("a", {0}), on("a", {1}), on("a", {2}), on("b", {0})};
  EXPECT_THAT(processes_for(3, Placement::spread, uneven), ElementsAre(0, 1, 3)) << "b has no more";
}

TEST(ProcessesFor, MoreWorkersAreSeveralInEveryProcessOrNone) {
  for (const auto placement : kBoth) {
    EXPECT_THAT(processes_for(12, placement, two_nodes()), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(processes_for(8, placement, two_nodes()), IsEmpty());
  }
}

TEST(AssignProcesses, RunsACellOnceWhereBothPlacementsAreTheSame) {
  const std::vector cells{cell_of(1), cell_of(2), cell_of(4), cell_of(6), cell_of(8)};
  const auto assigned = assign_processes(cells, kBoth, two_nodes());
  EXPECT_THAT(ids(assigned), ElementsAre("w1", "w2", "w2-spread", "w4", "w4-spread", "w6", "w8"));
  EXPECT_EQ(assigned[1].options.placement, Placement::packed);
  EXPECT_EQ(assigned[2].options.placement, Placement::spread);
  EXPECT_EQ(assigned[6].skip, "8 workers do not divide by 6 processes");
  EXPECT_NE(study::agreed_on(assigned), study::agreed_on(assign_processes(cells, kPacked, two_nodes())));
}

TEST(AssignProcesses, GiveACellTheSameNameWhateverElseIsAskedFor) {
  const std::vector cells{cell_of(1), cell_of(2)};
  constexpr Placement kSpread[] = {Placement::spread};
  const auto spread = assign_processes(cells, kSpread, two_nodes());
  EXPECT_THAT(ids(spread), ElementsAre("w1", "w2-spread"));
  EXPECT_EQ(spread[0].options.placement, Placement::packed) << "one worker is where it is in any case";
  const std::vector one_node{on("a", {0}), on("a", {1}), on("a", {2})};
  EXPECT_THAT(ids(assign_processes(cells, kBoth, one_node)), ElementsAre("w1", "w2"));
}

TEST(PlacementText, IsThereOnlyWhereItIsAChoice) {
  const auto text = [](int workers, Placement placement) {
    train::Options options;
    options.workers = workers;
    options.placement = placement;
    return placement_text(options, two_nodes());
  };
  EXPECT_EQ(text(2, Placement::packed), "packed");
  EXPECT_EQ(text(2, Placement::spread), "spread");
  EXPECT_EQ(text(5, Placement::spread), "") << "3 + 2 either way";
  EXPECT_EQ(text(6, Placement::packed), "");
}

TEST(CoresEach, AreThoseOfThePlacementWithTheFewest) {
  const std::vector members{on("a", {0, 1, 2, 3}), on("a", {0, 1, 2, 3}), on("b", {0, 1, 2, 3})};
  EXPECT_EQ(cli::cores_each(2, kBoth, members), 2) << "packed they share a node";
  constexpr Placement kSpread[] = {Placement::spread};
  EXPECT_EQ(cli::cores_each(2, kSpread, members), 4);
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
  cluster::ProcessInfo limited = on("a", {0, 1, 2, 3});
  limited.usable = 2;  // a cgroup's quota
  EXPECT_EQ(cores_each(1, std::vector{limited}), 2);
}

TEST(WorkersForConvergence, AreTheMostThatHaveCoresOfTheirOwn) {
  const auto workers = [](const std::vector<cluster::ProcessInfo>& members) {
    return workers_for_convergence({1, 2, 4}, [&](int count) { return cores_each(count, members); });
  };
  EXPECT_EQ(workers({on("a", {0, 1})}), 2);
  EXPECT_EQ(workers({on("a", {0}), on("a", {1})}), 2) << "each sees one core";
  EXPECT_EQ(workers({on("a", {0}), on("b", {0}), on("c", {0})}), 2) << "4 do not divide by 3 processes";
  EXPECT_EQ(workers({on("a", {0}), on("a", {0})}), 1) << "they share one core";
}

}  // namespace
}  // namespace paceline::cli
