#include "measure/ledger.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace paceline::measure {
namespace {

double at(const PhaseSeconds& seconds, Phase phase) { return seconds[static_cast<std::size_t>(phase)]; }
double total(const PhaseSeconds& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }
void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(Ledger, PhasesAddUpToTheWallTime) {
  Ledger ledger;
  const auto before = base::Clock::now();
  ledger.start();
  const auto started = base::Clock::now();
  for (int i = 0; i < 20000; ++i) ledger.enter(static_cast<Phase>(i % static_cast<int>(kPhases)));
  const auto ending = base::Clock::now();
  const auto seconds = ledger.totals();
  const auto after = base::Clock::now();
  // Whatever interrupts this test falls inside one of the two walls, so the bounds hold to the rounding of
  // the sums.
  constexpr double kRounding = 1e-9;
  EXPECT_GE(total(seconds), base::seconds(ending - started) - kRounding);
  EXPECT_LE(total(seconds), base::seconds(after - before) + kRounding);
}

TEST(Ledger, BooksTimeOnThePhaseThatWasCurrent) {
  Ledger ledger;
  ledger.start();
  sleep_ms(5);
  EXPECT_EQ(ledger.enter(Phase::forward), Phase::other);
  sleep_ms(20);
  EXPECT_EQ(ledger.enter(Phase::update), Phase::forward);
  const auto seconds = ledger.totals();
  EXPECT_GE(at(seconds, Phase::other), 0.005);
  EXPECT_GE(at(seconds, Phase::forward), 0.020);
  EXPECT_LT(at(seconds, Phase::update), at(seconds, Phase::forward));
  EXPECT_EQ(at(seconds, Phase::backward), 0);
}

TEST(Ledger, BlockReturnsToThePhaseBefore) {
  Ledger ledger;
  ledger.start();
  ledger.enter(Phase::backward);
  {
    const InPhase waiting(ledger, Phase::exposed_wait);
    sleep_ms(5);
  }
  EXPECT_EQ(ledger.enter(Phase::other), Phase::backward);
  EXPECT_GE(at(ledger.totals(), Phase::exposed_wait), 0.005);
}

TEST(Ledger, MovingKeepsTheTotalAndNeverGoesBelowZero) {
  Ledger ledger;
  ledger.start();
  ledger.enter(Phase::exposed_transfer);
  sleep_ms(10);
  ledger.enter(Phase::other);
  const double booked = at(ledger.totals(), Phase::exposed_transfer);
  ledger.move(Phase::exposed_transfer, Phase::exposed_wait, booked / 2);
  auto seconds = ledger.totals();
  EXPECT_DOUBLE_EQ(at(seconds, Phase::exposed_wait), booked / 2);
  EXPECT_DOUBLE_EQ(at(seconds, Phase::exposed_transfer), booked / 2);
  ledger.move(Phase::exposed_transfer, Phase::exposed_wait, 1000);
  seconds = ledger.totals();
  EXPECT_EQ(at(seconds, Phase::exposed_transfer), 0);
  EXPECT_DOUBLE_EQ(at(seconds, Phase::exposed_wait), booked);
}

TEST(Ledger, KeepsTheLatestStaysInTheMemoryItHas) {
  Ledger ledger;
  LatestSpans latest(4);
  ledger.keep_latest(&latest);
  ledger.start();
  const auto begin = base::Clock::now();
  for (const auto phase : {Phase::data_wait, Phase::forward, Phase::backward}) ledger.enter(phase);
  EXPECT_TRUE(latest.has_all_since(begin));
  EXPECT_EQ(latest.since(begin).size(), 3U);  // other, data wait, forward
  sleep_ms(1);
  const auto later = base::Clock::now();
  for (const auto phase : {Phase::update, Phase::other, Phase::checkpoint}) ledger.enter(phase);
  EXPECT_FALSE(latest.has_all_since(begin)) << "two made room";
  EXPECT_TRUE(latest.has_all_since(later));
  std::vector<Phase> kept;
  for (const auto& span : latest.since(later)) kept.push_back(span.phase);
  EXPECT_EQ(kept, (std::vector{Phase::backward, Phase::update, Phase::other}));
  latest.clear();
  EXPECT_TRUE(latest.since(begin).empty());
}

TEST(Ledger, StartForgetsWhatWasBefore) {
  Ledger ledger;
  ledger.start();
  ledger.enter(Phase::forward);
  sleep_ms(5);
  ledger.start();
  EXPECT_EQ(at(ledger.totals(), Phase::forward), 0);
}

TEST(Ledger, EveryPhaseHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kPhases; ++i) names.insert(name(static_cast<Phase>(i)));
  EXPECT_EQ(names.size(), kPhases);
  EXPECT_EQ(name(Phase::data_wait), "data wait");
  EXPECT_EQ(name(Phase::exposed_wait), "exposed wait");
  EXPECT_EQ(name(Phase::other), "other");
}

}  // namespace
}  // namespace paceline::measure
