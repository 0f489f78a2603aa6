#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/make_backend.h"

namespace paceline::cluster {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(NoteOfOtherKernels, NamesTheFirstProcessesAndCountsTheRest) {
  EXPECT_EQ(note_of_other_kernels({}, 24), "");
  std::vector<OtherKernels> others;
  for (int process = 1; process <= 6; ++process) others.push_back({process, "b", 3});
  const auto note = note_of_other_kernels(others, 24);
  EXPECT_THAT(note, HasSubstr("process 1 on b (3 of 24 problems), process 2 on b (3 of 24 problems)"));
  EXPECT_THAT(note, HasSubstr("process 4 on b (3 of 24 problems) and 2 more;"));
  EXPECT_THAT(note, Not(HasSubstr("process 5")));
}

TEST(MakeBackend, HidesTheSumsOfWorkersThatSleep) {
  train::Options options;
  options.emulate_link = "latency=1ms";
  EXPECT_FALSE(emulation_of(options).hides_sums);
  options.emulate_compute = "forward=1ms,backward=1ms";
  EXPECT_TRUE(emulation_of(options).hides_sums);
}

TEST(MakeBackend, WantsALinkSlowEnoughForSums) {
  const auto said = [](const comm::Emulation& emulation) {
    try {
      const std::vector<std::int64_t> buckets{400'000, 40'000};
      return make_backend("cpu", nullptr, emulation).machine->require_slow_links(4, buckets);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::usage);
      return std::string("refused: ") + error.what();
    }
  };
  EXPECT_THAT(
      said({}),
      HasSubstr("refused: --emulate-compute with 4 workers: they are as if on nodes of their own, but "
                "no link joins these"));
  // Nobody adds 400 kB of three others in a tenth of a microsecond, and every machine in two seconds.
  EXPECT_THAT(said({.link = comm::EmulatedLink{.bytes_per_s = 6e12}, .straggler = {}}),
              HasSubstr("refused: --emulate-compute: a bucket of"));
  EXPECT_THAT(said({.link = comm::EmulatedLink{.latency_s = 1}, .straggler = {}}),
              HasSubstr("ms of processor time to sum over 4 workers here"));
}

}  // namespace
}  // namespace paceline::cluster
