/// Every diagnosis from a cause that is known: what the communicator was told to cost stands in the right
/// line of the ledger, with the right amount.

#include <numeric>

#include "comm/emulate.h"
#include "fixture.h"
#include "measure/statistics.h"

namespace paceline::train {
namespace {

using measure::Phase;

class Emulated : public TrainingTest {
 protected:
  static measure::Record train_with(Options options, const comm::Emulation& emulation) {
    options.workers = 2;
    options.threads = 1;
    options.window_steps = 20;
    options.warmup_steps = 2;
    auto backend = backend_of(options.device);
    backend.communicators = [&](int ranks, std::chrono::seconds deadline) {
      return comm::emulate(comm::make_local(ranks, {.deadline = deadline}), emulation);
    };
    return run(options, backend, {}, {});
  }
  static double phase(const measure::RankRecord& rank, Phase phase) {
    return rank.phases[static_cast<std::size_t>(phase)];
  }
};

TEST_F(Emulated, ASlowLinkIsExposedTransferOfTheInjectedAmount) {
  // The model computes for about a millisecond, so next to nothing of a link of 2 x 20 ms is hidden.
  const comm::EmulatedLink link{.latency_s = 0.02};
  const auto record = train_with(small(), {.link = link, .straggler = {}});
  // A step's reductions: the buckets and the votes, one after the other on the link.
  const double injected =
      20 * (static_cast<double>(record.buckets.size()) + 1) * comm::link_seconds(link, 2, 0);
  for (const auto& rank : record.ranks) {
    EXPECT_NEAR(phase(rank, Phase::exposed_transfer), injected, 0.15 * injected);
    EXPECT_LT(phase(rank, Phase::exposed_wait), 0.15 * injected);
  }
  EXPECT_NE(record.communication.communicator.find("EMULATED"), std::string::npos);
}

TEST_F(Emulated, AStragglerIsWaitingOfTheOthersOfTheInjectedAmount) {
  // How long the rank's own work takes is this machine's: the straggler's own ledger says by how much it was
  // made longer, of a work that is 20 times what it would be.
  const auto record =
      train_with(small(), {.link = {}, .straggler = comm::EmulatedStraggler{.rank = 1, .slower = 20}});
  const auto& waits = record.ranks[0];
  const auto& slow = record.ranks[1];
  const auto work = [](const measure::RankRecord& rank) {
    return rank.wall_s - phase(rank, Phase::exposed_wait) - phase(rank, Phase::exposed_transfer);
  };
  const double injected = work(slow) * 19 / 20;
  EXPECT_NEAR(phase(waits, Phase::exposed_wait), injected, 0.15 * injected);
  EXPECT_LT(phase(slow, Phase::exposed_wait), 0.15 * injected);
  EXPECT_LT(phase(waits, Phase::exposed_transfer), 0.15 * injected);
}

}  // namespace
}  // namespace paceline::train
