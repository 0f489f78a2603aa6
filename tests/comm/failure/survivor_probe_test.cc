#include "comm/failure/survivor_probe.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>

#include "base/clock.h"

namespace paceline::comm {
namespace {

TEST(SurvivorProbe, TheLowestThatAnswersIsFoundAndThoseBelowItAreMissing) {
  std::vector<std::unique_ptr<SurvivorProbe>> calls(5);
  std::vector<Address> addresses(5);
  for (std::size_t process = 1; process < calls.size(); ++process) {
    calls[process] = std::make_unique<SurvivorProbe>();
    addresses[process] = calls[process]->address();
  }
  for (const int process : {2, 4}) {
    const auto called = probe_survivors(process, addresses);
    EXPECT_EQ(called.lowest, 1);
    EXPECT_TRUE(called.missing.empty());
  }
  EXPECT_EQ(probe_survivors(1, addresses).lowest, 1) << "it has nobody to ask";
  EXPECT_TRUE(missing_above(1, addresses).empty());
  calls[1].reset();
  calls[2].reset();
  EXPECT_EQ(probe_survivors(4, addresses).lowest, 3);
  EXPECT_EQ(probe_survivors(4, addresses).missing, (std::vector<int>{1, 2}));
  EXPECT_EQ(probe_survivors(3, addresses).lowest, 3);
  EXPECT_EQ(probe_survivors(3, addresses).missing, (std::vector<int>{1, 2}));
  EXPECT_TRUE(missing_above(3, addresses).empty());
  calls[1] = std::make_unique<SurvivorProbe>();
  addresses[1] = calls[1]->address();
  calls[4].reset();
  EXPECT_EQ(probe_survivors(1, addresses).lowest, 1);
  EXPECT_EQ(missing_above(1, addresses), (std::vector<int>{2, 4})) << "process 3 is there";
}

TEST(SurvivorProbe, WhoIsStuckOrAStrangerIsMissingAfterAMoment) {
  int listener = -1;
  std::vector<Address> addresses{
      {}, listen_anywhere(listener), {}};  // its backlog takes the question, nobody answers
  const Socket stuck(listener);
  const SurvivorProbe stranger;
  addresses.push_back(stranger.address());
  addresses[2] = addresses[3];
  addresses[2].token ^= 1;  // it has come to a port that was another's
  const auto begin = base::Clock::now();
  const auto called = probe_survivors(4, addresses);
  EXPECT_EQ(called.lowest, 3);
  EXPECT_EQ(called.missing, (std::vector<int>{1, 2}));
  EXPECT_LT(base::seconds_since(begin), 5.0);
}

}  // namespace
}  // namespace paceline::comm
