#include "cluster/gpu_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "base/archive.h"
#include "base/shared_library.h"
#include "cli/program.h"
#include "comm/gloo/load.h"

namespace paceline::cluster {
namespace {

using cli::Outcome;
using cli::run_program;
using cli::run_two_processes;
using cli::RunConditions;
using engine::cuda::GpuFacts;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Rank `rank` with all cores of a host of two sockets, and the GPU of its number, near the first or the
/// second.
RankOnGpu rank_on(int rank, const std::string& host = "a") {
  const bool is_second = rank % 2 == 1;
  return {.rank = rank,
          .host = host,
          .cores = {0, 1, 2, 3, 4, 5, 6, 7},
          .driver = "580.65.06",
          .gpu = GpuFacts{.index = rank,
                          .name = "NVIDIA H100",
                          .uuid = "GPU-4f2ab310-99",
                          .bus_id = "00000000:0" + std::to_string(rank + 1) + ":00.0",
                          .performance_state = 0,
                          .pcie = base::PcieLink{5, 16},
                          .pcie_most = base::PcieLink{5, 16},
                          .brakes = 0U},
          .near = base::PciLocality{.cores = is_second ? std::vector<int>{4, 5, 6, 7}
                                                       : std::vector<int>{0, 1, 2, 3},
                                    .numa = is_second ? 1 : 0},
          .why_none = ""};
}

TEST(OddAboutGpus, NothingWhereEachRankHasASoundGpuOfItsOwn) {
  EXPECT_THAT(odd_about_gpus({rank_on(0), rank_on(1)}), IsEmpty());
  EXPECT_THAT(odd_about_gpus({}), IsEmpty());
  auto none = rank_on(0);
  none.gpu.reset();
  EXPECT_THAT(odd_about_gpus({none}), IsEmpty()) << "nobody has one: a run on the processor";
}

TEST(OddAboutGpus, TwoRanksOnOneGpu) {
  auto other = rank_on(1);
  other.gpu->index = 0;
  EXPECT_THAT(odd_about_gpus({rank_on(0), other}), IsEmpty()) << "each the first of its container";
  other.gpu->bus_id = rank_on(0).gpu->bus_id;
  EXPECT_THAT(odd_about_gpus({rank_on(0), other}),
              ElementsAre(AllOf(HasSubstr("ranks 0, 1 share GPU 0 of a"), HasSubstr("as many processes"))));
  other.host = "b";
  EXPECT_THAT(odd_about_gpus({rank_on(0), other}), IsEmpty());
}

TEST(OddAboutGpus, CoresOnTheFarSocket) {
  auto bound = rank_on(1);
  bound.cores = {0, 1, 2, 3};
  EXPECT_THAT(odd_about_gpus({bound}),
              ElementsAre(AllOf(
                  HasSubstr("rank 1 on a may use cores 0-3, but its GPU 1 is near cores 4-7 (memory node 1)"),
                  HasSubstr("--bind-to none"), HasSubstr("--cpu-bind=none"))));
  bound.cores = {3, 4};
  EXPECT_THAT(odd_about_gpus({bound}), IsEmpty()) << "its worker takes the near one";
}

TEST(OddAboutGpus, ALinkBelowWhatItCouldBe) {
  auto narrow = rank_on(0), slow = rank_on(0);
  narrow.gpu->pcie = base::PcieLink{5, 8};
  EXPECT_THAT(odd_about_gpus({narrow}), ElementsAre(HasSubstr("PCIe 5 x8 where it could be 5 x16")));
  slow.gpu->pcie = base::PcieLink{1, 16};
  EXPECT_THAT(odd_about_gpus({slow}), ElementsAre(HasSubstr("PCIe 1 x16 where it could be 5 x16")));
  slow.gpu->performance_state = 8;
  EXPECT_THAT(odd_about_gpus({slow}), IsEmpty()) << "an idle GPU saves power";
}

TEST(OddAboutGpus, ClocksProcessesMemoryModesAndWhatIsNotTold) {
  auto one = rank_on(0);
  one.gpu->brakes = bit(base::GpuBrake::thermal_hardware) | bit(base::GpuBrake::hardware_slowdown);
  one.gpu->processes = {{.pid = 41, .name = "python3"}, {.pid = 42}};
  one.gpu->memory_errors = 3;
  one.gpu->has_failed_rows = true;
  one.gpu->mig = true;
  one.gpu->unknown = {"nvmlDeviceGetPowerUsage: Unknown Error"};
  EXPECT_THAT(odd_about_gpus({one}),
              ElementsAre("GPU 0 of a: its clocks are held back: thermal (hardware), hardware slowdown",
                          "GPU 0 of a: python3 (process 41), process 42 are on it too; times will be shared",
                          AllOf(HasSubstr("3 errors of its memory"), HasSubstr("no spare rows are left"),
                                HasSubstr("dmesg | grep Xid")),
                          HasSubstr("MIG cuts it into instances"),
                          "GPU 0 of a: not told: nvmlDeviceGetPowerUsage: Unknown Error"));
}

TEST(OddAboutGpus, DriversAndGpusThatDiffer) {
  auto other = rank_on(1, "b");
  other.driver = "570.12";
  other.gpu->name = "NVIDIA L4";
  EXPECT_THAT(odd_about_gpus({rank_on(0), other}),
              ElementsAre(HasSubstr("drivers differ: 570.12 (rank 1), 580.65.06 (rank 0); install one"),
                          HasSubstr("GPUs differ: NVIDIA H100 (rank 0), NVIDIA L4 (rank 1); the slowest")));
}

TEST(OddAboutGpus, ARankThatSeesNone) {
  auto blind = rank_on(1, "b");
  blind.gpu.reset();
  blind.why_none = "GPUs: NVIDIA's driver is not there";
  EXPECT_THAT(odd_about_gpus({rank_on(0), blind}),
              ElementsAre("rank 1 on b sees no GPU, but others do: GPUs: NVIDIA's driver is not there"));
}

TEST(ShowGpuTable, HasALineForEachRank) {
  auto far = rank_on(1, "node17"), blind = rank_on(2);
  far.near.reset();
  blind.gpu.reset();
  std::ostringstream out;
  show_gpu_table({rank_on(0), far, blind}, out);
  EXPECT_EQ(out.str(),
            "  rank  host    GPU   name         UUID          PCI               near: cores  node\n"
            "  0     a       0     NVIDIA H100  GPU-4f2ab310  00000000:01:00.0  0-3          0\n"
            "  1     node17  1     NVIDIA H100  GPU-4f2ab310  00000000:02:00.0  unknown      -\n"
            "  2     a       none\n");
  std::ostringstream nothing;
  show_gpu_table({blind}, nothing);
  EXPECT_EQ(nothing.str(), "");
}

TEST(RanksOnGpus, SurviveTheWayToTheFirstProcess) {
  auto one = rank_on(0), blind = rank_on(3, "b");
  one.gpu->processes = {{.pid = 41, .name = "python3"}};
  one.gpu->unknown = {"a \"quoted\" one"};
  one.gpu->memory_errors = 3;
  one.gpu->mig = false;
  one.gpu->pcie.reset();
  blind.gpu.reset();
  blind.near.reset();
  blind.why_none = "no driver";
  const auto back = base::from_bytes<std::vector<RankOnGpu>>(base::to_bytes(std::vector{one, blind}));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].gpu->unknown, one.gpu->unknown);
  EXPECT_EQ(back[0].gpu->processes.at(0).name, "python3");
  EXPECT_EQ(back[0].gpu->memory_errors, 3);
  EXPECT_FALSE(back[0].gpu->pcie.has_value());
  EXPECT_EQ(back[0].gpu->pcie_most->width, 16);
  EXPECT_EQ(back[0].near->numa, 0);
  EXPECT_FALSE(back[1].gpu || back[1].near);
  EXPECT_EQ(back[1].why_none, "no driver");
}

// The program as a user runs it, with an imitation of the driver's library of two GPUs.
Outcome with_two_gpus(const std::vector<std::string>& words,
                      std::vector<std::pair<std::string, std::string>> variables = {}) {
  variables.emplace_back("LD_LIBRARY_PATH", PACELINE_NVML_IMITATION);
  return run_program(words, {.variables = std::move(variables)});
}

TEST(GpuTable, DoctorSaysWhichRankWouldTakeWhichGpuAndWhatIsWrongWithIt) {
  const auto outcome = with_two_gpus({"doctor", "--no-measure"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("driver        580.65.06, for CUDA up to 13.0\n"));
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex("  0 +[^ ]+ +0 +NVIDIA H100 80GB HBM3 +GPU-aaaa1111 +00000000:01:00.0"));
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex("  1 +[^ ]+ +1 +NVIDIA H100 80GB HBM3 +GPU-bbbb2222 +00000000:C1:00.0"));
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex("GPU 1 of [^ ]+: its link is PCIe 5 x8 where it could be 5 x16"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("GPU 1 of [^ ]+: its clocks are held back: thermal"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("GPU 1 of [^ ]+: python3 .process 41. is on it too"));
  EXPECT_THAT(outcome.out, Not(testing::ContainsRegex("GPU 0 of [^ ]+:")));
}

TEST(GpuTable, VisibleDevicesDecideWhoTakesWhich) {
  const auto outcome = with_two_gpus({"doctor", "--no-measure"}, {{"CUDA_VISIBLE_DEVICES", "GPU-bbbb,0"}});
  EXPECT_THAT(outcome.out, testing::ContainsRegex("  0 +[^ ]+ +1 +NVIDIA H100"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("  1 +[^ ]+ +0 +NVIDIA H100"));
  const auto one = with_two_gpus({"doctor", "--no-measure"}, {{"CUDA_VISIBLE_DEVICES", "0"}});
  EXPECT_THAT(one.out, Not(testing::ContainsRegex("  1 +[^ ]+ +[01] +NVIDIA H100")));
}

// Each process asks for itself, and the first one shows them all.
TEST(GpuTable, OfALaunchHasARowForEachRank) {
  if (!std::filesystem::exists(base::module_path(comm::gloo::kModule)))
    GTEST_SKIP() << "gloo is not built in";
  const auto outcome = with_two_gpus({"launch", "--by", "here", "-n", "3", "--", "doctor", "--no-measure"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* row : {"  0 +[^ ]+ +0 +NVIDIA", "  1 +[^ ]+ +1 +NVIDIA", "  2 +[^ ]+ +0 +NVIDIA"})
    EXPECT_THAT(outcome.out, testing::ContainsRegex(row));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("ranks 0, 2 share GPU 0 of "));
}

/// The doctor's table of two processes of this host, each with its CUDA_VISIBLE_DEVICES.
std::string table_of_two(const std::string& first, const std::string& second) {
  return run_two_processes({"doctor", "--no-measure"},
                           [&](int rank) -> RunConditions {
                             return {.variables = {{"LD_LIBRARY_PATH", PACELINE_NVML_IMITATION},
                                                   {"CUDA_VISIBLE_DEVICES", rank == 0 ? first : second}}};
                           })
      .out;
}

// As Slurm does with --gpus-per-task: each process sees one GPU, as number 0.
TEST(GpuTable, ProcessesThatEachSeeOneGpuOfTheirOwnTakeThese) {
  if (!std::filesystem::exists(base::module_path(comm::gloo::kModule)))
    GTEST_SKIP() << "gloo is not built in";
  const auto apart = table_of_two("0", "1");
  EXPECT_THAT(apart, testing::ContainsRegex("  0 +[^ ]+ +0 +NVIDIA H100 80GB HBM3 +GPU-aaaa1111"));
  EXPECT_THAT(apart, testing::ContainsRegex("  1 +[^ ]+ +1 +NVIDIA H100 80GB HBM3 +GPU-bbbb2222"));
  EXPECT_THAT(apart, Not(HasSubstr("share GPU")));
  const auto together = table_of_two("0,1", "GPU-aaaa");
  EXPECT_THAT(together, testing::ContainsRegex("ranks 0, 1 share GPU 0 of "));
  const auto turned = table_of_two("0,1", "1,0");
  EXPECT_THAT(turned, testing::ContainsRegex("  1 +[^ ]+ +1 +NVIDIA H100 80GB HBM3 +GPU-bbbb2222"));
  EXPECT_THAT(turned, Not(HasSubstr("share GPU"))) << "each takes its own number 0";
}

TEST(GpuTable, ALostGpuDoesNotMoveTheOthers) {
  if (!std::filesystem::exists(base::module_path(comm::gloo::kModule)))
    GTEST_SKIP() << "gloo is not built in";
  const auto outcome = with_two_gpus({"launch", "--by", "here", "-n", "3", "--", "doctor", "--no-measure"},
                                     {{"NVML_IMITATION_LOST", "1"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("  0 +[^ ]+ +0 +NVIDIA H100 80GB HBM3 +GPU-aaaa1111"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("  1 +[^ ]+ +none"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("  2 +[^ ]+ +2 +NVIDIA H100 80GB HBM3 +GPU-bbbb2222"));
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex("rank 1 on [^ ]+ sees no GPU, but others do: the driver has lost"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("share GPU")));
}

TEST(GpuTable, LaunchStartsAWorkerForEachGpu) {
  const auto both = with_two_gpus({"launch", "--print", "--by", "here", "--", "train", "--device", "cuda"});
  EXPECT_THAT(both.out, HasSubstr("WORLD_SIZE=2")) << both.err;
  EXPECT_THAT(both.err, HasSubstr("--device cuda: --processes 2, one for each GPU of this host"));
  const auto one = with_two_gpus({"launch", "--print", "--by", "here", "--", "train", "--device", "cuda"},
                                 {{"CUDA_VISIBLE_DEVICES", "1"}});
  EXPECT_THAT(one.out, HasSubstr("WORLD_SIZE=1")) << one.err;
  const auto told =
      with_two_gpus({"launch", "--print", "--by", "here", "-n", "3", "--", "train", "--device", "cuda"});
  EXPECT_THAT(told.out, HasSubstr("WORLD_SIZE=3")) << "who says how many is obeyed";
  const auto cpu = with_two_gpus({"launch", "--print", "--by", "here", "--", "train"});
  EXPECT_EQ(cpu.code, 2) << "on the processor somebody has to say it";
}

}  // namespace
}  // namespace paceline::cluster
