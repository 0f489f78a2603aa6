#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "cluster/make_backend.h"
#include "comm/fake_wire.h"
#include "comm/process_group.h"

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

// Three processes, of which the second cannot start the usual algorithm, nor the third the next one.
TEST(MakeBackend, UsesNothingThatOneProcessCannotStart) {
  const std::string problem = "forward, a layer";
  for (const bool is_measured : {false, true}) {
    std::vector<engine::PreparedKernels> prepared(3);
    const auto run = [&](comm::ProcessGroup& processes) {
      const int process = processes.process();
      const auto prepare = [&](const engine::KernelRequest& request) {
        engine::PreparedKernels made{.chosen_by = "heuristics", .passed_over = request.passed_over};
        const auto can_start = [&](const std::string& algorithm) {
          const engine::PassedOver one{problem, algorithm, fmt::format("fails on {}", process)};
          if (std::ranges::find(made.passed_over, one) != made.passed_over.end()) return false;
          const bool fails = algorithm == fmt::format("fails-on-{}", process);
          if (fails) made.passed_over.push_back(one);
          return !fails;
        };
        std::vector<std::string> in_turn{"fails-on-1", "fails-on-2", "good"};
        if (const auto given = request.given.find(problem); given != request.given.end())
          in_turn.insert(in_turn.begin(), given->second);
        engine::KernelAlgorithms chosen;
        chosen[problem] = *std::ranges::find_if(in_turn, can_start);
        made.algorithms = std::make_shared<const engine::KernelAlgorithms>(chosen);
        return made;
      };
      prepared[static_cast<std::size_t>(process)] =
          prepare_alike(processes, {.is_measured = is_measured}, prepare);
    };
    const auto network = std::make_shared<comm::FakeNetwork>(3);
    std::vector<std::thread> threads;
    for (int process = 0; process < 3; ++process)
      threads.emplace_back([&, process] {
        comm::FakeWire wire(network, process);
        comm::ProcessGroup joined(wire, {}, [](const std::string&) {});
        run(joined);
      });
    for (auto& thread : threads) thread.join();
    for (const auto& one : prepared) {
      EXPECT_EQ(one.algorithms->at(problem), "good");
      ASSERT_EQ(one.passed_over.size(), 2u);
      EXPECT_EQ(one.passed_over[0].why, "fails on 1");
      EXPECT_EQ(one.passed_over[1].why, "fails on 2");
    }
  }
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
