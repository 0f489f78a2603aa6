#include "analysis/compare/cell.h"

#include <gtest/gtest.h>

#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;

TEST(CoresUsed, AreThoseOfAllProcessesAndHosts) {
  auto record = make_record({.workers = 2});
  record.environment.cores = 1;  // mpirun binds each process to one core: process 0 sees one
  record.ranks[0].cores = {0};
  record.ranks[1].cores = {1};
  EXPECT_EQ(cores_used(record), 2);
  record.ranks[1].cores = {0};
  EXPECT_EQ(cores_used(record), 1) << "two workers on one core";
  record.ranks[0].host = "a";
  record.ranks[1].host = "b";
  EXPECT_EQ(cores_used(record), 2) << "core 0 of two hosts";
}

TEST(CoresUsed, OfWorkersThatAreNotPinnedAreWhatIsThere) {
  auto record = make_record({.workers = 4});
  for (auto& rank : record.ranks) rank.cores.clear();
  EXPECT_EQ(cores_used(record), 2) << "two cores for four threads";
  record.environment.cores = 8;
  EXPECT_EQ(cores_used(record), 4) << "four threads on eight cores";
  record.environment.cores = 1;
  record.ranks[0].host = record.ranks[1].host = "a";
  record.ranks[2].host = record.ranks[3].host = "b";
  EXPECT_EQ(cores_used(record), 2) << "one core on each of two hosts";
}

// What was not run knows only what its options asked for; one worker has no link.
TEST(Emulated, IsAGpuThatIsNone) {
  auto record = make_record({.workers = 2});
  record.device = "cuda-on-host";
  EXPECT_EQ(emulated(record), "GPU (no GPU: the CUDA engine on the processor)");
  record.communication.communicator = "local + EMULATED link of 1000 us";
  EXPECT_EQ(emulated(record), "GPU (no GPU: the CUDA engine on the processor); link of 1000 us");
}

TEST(Emulated, IsComputeThatWasSleptThrough) {
  auto record = make_record({});
  record.settings["emulate-compute"] = "forward=80ms,backward=160ms,ready=100:80ms/200:160ms";
  EXPECT_EQ(emulated(record), "compute (forward=80ms,backward=160ms)");
}

TEST(Emulated, IsAnExchangeThatWasLeftOut) {
  auto record = make_record({.workers = 2});
  record.settings["control"] = "no-exchange";
  EXPECT_EQ(emulated(record), "exchange of gradients that takes no time (a control: they are not summed)");
  record.workers = 1;
  EXPECT_EQ(emulated(record), "") << "one worker exchanges nothing";
}

TEST(Emulated, IsWhatWasAskedForWhereNothingWasRun) {
  auto record = make_record({.workers = 2});
  record.ranks.clear();
  record.settings["emulate-link"] = "latency=50us";
  record.settings["emulate-straggler"] = "rank=1,slower=2x";
  EXPECT_EQ(emulated(record), "link latency=50us; straggler rank=1,slower=2x");
  record.workers = 1;
  EXPECT_EQ(emulated(record), "");
}

}  // namespace
}  // namespace paceline::analysis
