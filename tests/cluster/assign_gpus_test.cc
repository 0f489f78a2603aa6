#include "cluster/assign_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace paceline::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// GPUs "0", "1", ... near these memory nodes.
std::vector<SeenGpu> gpus_near(const std::vector<int>& nodes) {
  std::vector<SeenGpu> gpus;
  for (std::size_t i = 0; i < nodes.size(); ++i) gpus.push_back({.id = std::to_string(i), .node = nodes[i]});
  return gpus;
}

std::vector<GpuTaker> all_see(const std::vector<int>& nodes, const std::vector<SeenGpu>& gpus) {
  std::vector<GpuTaker> takers;
  for (const int node : nodes) takers.push_back({.node = node, .gpus = gpus});
  return takers;
}

/// Of processes near these nodes that see all GPUs: what each takes for its one worker.
std::vector<int> deal(const std::vector<int>& processes, const std::vector<int>& gpus) {
  std::vector<int> taken;
  for (const auto& of_process : assign_gpus(all_see(processes, gpus_near(gpus)), 1))
    taken.push_back(of_process.at(0));
  return taken;
}

TEST(AssignGpus, EachTakesOneNearItsCores) {
  // srun's cores in blocks, and a board whose first two GPUs hang on the second socket.
  EXPECT_THAT(deal({0, 0, 1, 1}, {1, 1, 0, 0}), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(deal({0, 1, 0, 1}, {0, 0, 1, 1}), ElementsAre(0, 2, 1, 3));
}

TEST(AssignGpus, NobodyIsMovedForNothing) {
  EXPECT_THAT(deal({0, 0, 1, 1}, {0, 0, 1, 1}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(deal({0, 0}, {0, 0, 1, 1}), ElementsAre(0, 1));
  EXPECT_THAT(deal({-1, -1, -1}, {0, 1, 1}), ElementsAre(0, 1, 2)) << "not bound";
  EXPECT_THAT(deal({0, 1}, {}), ElementsAre(0, 1)) << "nobody knows where GPUs are";
  EXPECT_THAT(deal({}, {0}), ElementsAre());
}

TEST(AssignGpus, WhoFindsNoneGetsWhatIsLeft) {
  EXPECT_THAT(deal({0, 0, 0}, {1, 0, 1}), ElementsAre(0, 1, 2)) << "as many are near in any order";
  EXPECT_THAT(deal({0, 0, 1}, {1, 0, 1}), ElementsAre(1, 0, 2));
  EXPECT_THAT(deal({1, -1}, {1, 1}), ElementsAre(0, 1));
}

TEST(AssignGpus, AProcessOfSeveralWorkersTakesAGpuForEach) {
  // Two processes of two workers, each bound to the socket of which the other's numbers would be.
  EXPECT_THAT(assign_gpus(all_see({1, 0}, gpus_near({0, 0, 1, 1})), 2),
              ElementsAre(ElementsAre(2, 3), ElementsAre(0, 1)));
  EXPECT_THAT(assign_gpus(all_see({-1, -1}, gpus_near({0, 0, 1, 1})), 2),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(AssignGpus, WorkersThatOutnumberTheGpusBeginAgainAtTheFirst) {
  EXPECT_THAT(deal({-1, -1, -1, -1, -1}, {0, 0}), ElementsAre(0, 1, 0, 1, 0));
  // Those that work in a cell of two workers share none, wherever the others are bound.
  EXPECT_THAT(deal({0, 0, 1, 1}, {0, 1}), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(assign_gpus(all_see({-1, -1}, gpus_near({0, 0, 0})), 2),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 0)));
}

/// What each of `processes` gets for one worker.
std::vector<AssignedGpus> assigned_to_each(const std::vector<GpuTaker>& processes) {
  std::vector<AssignedGpus> all;
  for (std::size_t process = 0; process < processes.size(); ++process)
    all.push_back(assigned_to(process, processes, 1));
  return all;
}

// Slurm's --gpus-per-task: each sees its own as number 0, and all may use the same cores.
TEST(AssignedGpus, EachSeesOneOfItsOwn) {
  const std::vector<GpuTaker> processes{
      {.gpus = {{.id = "a", .node = 0, .cores = {0, 1}}}, .cores = {0, 1, 2, 3}},
      {.gpus = {{.id = "b", .node = 1, .cores = {2, 3}}}, .cores = {0, 1, 2, 3}}};
  for (const auto& one : assigned_to_each(processes)) {
    EXPECT_THAT(one.numbers, ElementsAre(0));
    EXPECT_EQ(one.workers_on_one, 1);
    EXPECT_THAT(one.cores_near, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)))
        << "both plan the cores of both alike: nobody pins another's";
  }
}

TEST(AssignedGpus, CoresThatAnotherCannotUseAreNotPlannedWithIt) {
  const std::vector<GpuTaker> processes{{.gpus = {{.id = "a", .cores = {0, 1}}}, .cores = {0, 1}},
                                        {.gpus = {{.id = "b", .cores = {2, 3}}}, .cores = {2, 3}}};
  EXPECT_THAT(assigned_to(1, processes, 2).cores_near, ElementsAre(ElementsAre(2, 3), ElementsAre(2, 3)));
}

TEST(AssignedGpus, TwoThatSeeTheSameAsNumberZeroShareIt) {
  for (const auto& one : assigned_to_each({{.gpus = {{.id = "a"}}}, {.gpus = {{.id = "a"}}}}))
    EXPECT_EQ(one.workers_on_one, 2);
}

TEST(AssignedGpus, ListsThatDifferAreComparedGpuByGpu) {
  // The same GPUs in another order, as some set CUDA_VISIBLE_DEVICES by rank.
  for (const auto& one :
       assigned_to_each({{.gpus = {{.id = "a"}, {.id = "b"}}}, {.gpus = {{.id = "b"}, {.id = "a"}}}}))
    EXPECT_EQ(one.workers_on_one, 1);
  const auto three = assigned_to_each(
      {{.gpus = {{.id = "a"}, {.id = "b"}}}, {.gpus = {{.id = "a"}}}, {.gpus = {{.id = "c"}}}});
  EXPECT_EQ(three[0].workers_on_one, 2);
  EXPECT_EQ(three[1].workers_on_one, 2);
  EXPECT_EQ(three[2].workers_on_one, 1);
}

TEST(AssignedGpus, AProcessKeepsItsGpuInCellsOfFewerWorkers) {
  auto processes = all_see({0, 0, 1, 1}, gpus_near({1, 1, 0, 0}));
  EXPECT_THAT(assigned_to(0, processes, 1).numbers, ElementsAre(2));
  EXPECT_THAT(assigned_to(1, processes, 1).numbers, ElementsAre(3));
  processes[2].works = processes[3].works = false;
  EXPECT_THAT(assigned_to(0, processes, 1).numbers, ElementsAre(2));
  EXPECT_THAT(assigned_to(1, processes, 1).numbers, ElementsAre(3));
  EXPECT_EQ(assigned_to(0, processes, 1).cores_near.size(), 2U);
  // Nobody counts who does not work.
  auto shared = all_see({-1, -1, -1, -1}, gpus_near({-1, -1}));
  EXPECT_EQ(assigned_to(0, shared, 1).workers_on_one, 2);
  shared[2].works = shared[3].works = false;
  EXPECT_EQ(assigned_to(0, shared, 1).workers_on_one, 1);
}

TEST(AssignedGpus, ANumberThatWasAskedForIsEverybodys) {
  const auto dealt = assigned_to(1, all_see({-1, -1}, gpus_near({-1, -1})), 2, 1);
  EXPECT_THAT(dealt.numbers, ElementsAre(1, 1));
  EXPECT_EQ(dealt.workers_on_one, 4);
}

TEST(AssignGpus, WorkersOfProcessesThatKnowOfNoGpuAreCounted) {
  EXPECT_THAT(assign_gpus(std::vector<GpuTaker>(2), 2), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(AssignGpus, SharesThemEvenlyWhateverIsKnown) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    unsigned state = seed * 2654435761U + 1;
    const auto pick = [&](unsigned of) {
      return static_cast<int>((state = state * 1664525U + 1013904223U) >> 16) % static_cast<int>(of);
    };
    std::vector<int> processes(static_cast<std::size_t>(1 + pick(8))),
        gpus(static_cast<std::size_t>(1 + pick(8)));
    for (int& node : processes) node = pick(4) - 1;
    for (int& node : gpus) node = pick(4) - 1;
    const int each = 1 + pick(3);
    std::vector<int> workers(gpus.size());
    for (const auto& of_process : assign_gpus(all_see(processes, gpus_near(gpus)), each)) {
      ASSERT_EQ(of_process.size(), static_cast<std::size_t>(each)) << "seed " << seed;
      for (const int number : of_process) ++workers.at(static_cast<std::size_t>(number));
    }
    const auto [least, most] = std::ranges::minmax(workers);
    ASSERT_LE(most - least, 1) << "seed " << seed;
  }
}

TEST(AssignedGpus, SayWhetherAnyGpuIsShared) {
  // Three processes on two GPUs: the second has one of its own, but NCCL refuses the other two.
  const auto all = assigned_to_each(all_see({-1, -1, -1}, gpus_near({-1, -1})));
  EXPECT_EQ(all[1].workers_on_one, 1);
  for (const auto& one : all) EXPECT_TRUE(one.is_any_shared);
  for (const auto& one : assigned_to_each(all_see({-1, -1}, gpus_near({-1, -1}))))
    EXPECT_FALSE(one.is_any_shared);
}

TEST(AssignedGpus, WhoSeesNoneKnowsOnlyHowManyWorkersThereAre) {
  std::vector<GpuTaker> processes(3);
  processes[2].works = false;
  const auto dealt = assigned_to(1, processes, 2);
  EXPECT_EQ(dealt.workers_on_one, std::nullopt);
  EXPECT_EQ(dealt.workers_here, 4);
  EXPECT_EQ(most_on_one(dealt.workers_here, 2), 2);
  EXPECT_EQ(most_on_one(dealt.workers_here, 3), 2);
  EXPECT_EQ(most_on_one(dealt.workers_here, 8), 1);
}

TEST(GpuIdentity, IsTheSameInAllProcesses) {
  EXPECT_EQ(gpu_identity("00000000:C1:00.0", 0, nullptr), "0000:c1:00.0");
  EXPECT_EQ(gpu_identity("0000:c1:00.0", 3, "3,2"), "0000:c1:00.0");
  EXPECT_EQ(gpu_identity("0000:c1:00.0", 0, "MIG-Aa,MIG-Bb"), "0000:c1:00.0mig-aa");
  EXPECT_EQ(gpu_identity("0000:c1:00.0", 0, "MIG-Aa"), "0000:c1:00.0mig-aa");
  EXPECT_EQ(gpu_identity("", 1, nullptr), "unknown-1");
}

TEST(SeenGpus, SurviveTheWayToAnotherProcess) {
  const std::vector<SeenGpu> gpus{{.id = "0000:c1:00.0", .node = 1, .cores = {4, 5, 6, 7, 12}},
                                  {.id = gpu_identity("", 1, nullptr)},
                                  {.id = "0000:01:00.0"}};
  const auto back = base::from_bytes<std::vector<SeenGpu>>(base::to_bytes(gpus));
  ASSERT_EQ(back.size(), 3U);
  EXPECT_EQ(back[1].id, "unknown-1");
  EXPECT_EQ(back[2].id, "0000:01:00.0");
  EXPECT_EQ(back[0].id, "0000:c1:00.0");
  EXPECT_EQ(back[0].node, 1);
  EXPECT_THAT(back[0].cores, ElementsAre(4, 5, 6, 7, 12));
  EXPECT_EQ(back[1].node, -1);
  EXPECT_THAT(back[1].cores, IsEmpty());
}

}  // namespace
}  // namespace paceline::cluster
