#include "comm/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/ranks.h"

namespace paceline::comm {
namespace {

/// A communicator whose all-reduce leaves one element as it was: what a probe exists to notice.
class Faulty final : public Communicator {
 public:
  explicit Faulty(Communicator& inner) : inner_(inner) {}
  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }
  [[nodiscard]] std::string name() const override { return "faulty"; }
  [[nodiscard]] std::string algorithm() const override { return "faulty"; }
  std::unique_ptr<Pending> all_reduce(std::span<const float> src, std::span<float> dst) override {
    return inner_.all_reduce(src.first(src.size() - 1), dst.first(dst.size() - 1));
  }
  /// Right, but that what was given is lost.
  std::unique_ptr<Pending> reduce_scatter(std::span<const float> src, std::span<float> dst) override {
    auto pending = inner_.reduce_scatter(src, dst);
    pending->wait();
    const_cast<float&>(src[0]) += 1;
    return pending;
  }
  void all_reduce(std::span<double> values, Reduce reduce) override { inner_.all_reduce(values, reduce); }
  void broadcast(std::span<std::byte> bytes, int root) override { inner_.broadcast(bytes, root); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    inner_.all_gather(mine, all);
  }
  void barrier() override { inner_.barrier(); }
  void scatter(std::span<const std::byte>, std::span<std::byte>, int) override {}
  void gather(std::span<const std::byte>, std::span<std::byte>, int) override {}
  void reduce(std::span<float>, int) override {}
  void abort(const std::string& reason, base::ErrorKind kind) override { inner_.abort(reason, kind); }
  [[nodiscard]] Traffic traffic() const override { return inner_.traffic(); }

 private:
  Communicator& inner_;
};

TEST(Probe, TimesAndChecksEveryRepetition) {
  for (const int ranks : {1, 2, 5}) {
    const auto errors = on_ranks(ranks, {}, [&](Communicator& comm) {
      const Probe result = probe(comm, {}, 10007, 1, 4);
      EXPECT_EQ(result.bytes, 4u * 10007);
      EXPECT_EQ(result.seconds.size(), 4u);
      EXPECT_TRUE(result.correct);
      for (const double seconds : result.seconds) EXPECT_GT(seconds, 0);
    });
    EXPECT_THAT(errors, testing::Each(""));
  }
}

TEST(Probe, KnowsEveryCollectiveInPlaceAndOutOfPlace) {
  for (const int ranks : {1, 2, 3, 4}) {
    const auto errors = on_ranks(ranks, {}, [&](Communicator& comm) {
      for (const Trial trial : kTrials) {
        const Probe one = probe(comm, trial, 10007, 0, 2);
        EXPECT_TRUE(one.correct) << name(trial.collective) << (trial.in_place ? "" : " out of place");
        EXPECT_NEAR(static_cast<double>(one.bytes), 4 * 10007, 4 * ranks);
      }
    });
    EXPECT_THAT(errors, testing::Each(""));
  }
}

TEST(Probe, WhatWasGivenOutOfPlaceMustStay) {
  const auto errors = on_ranks(2, {}, [&](Communicator& comm) {
    Faulty faulty(comm);
    EXPECT_FALSE(probe(faulty, {Collective::reduce_scatter, false}, 5000, 0, 1).correct);
  });
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(Probe, OneWrongElementIsNoticedOnEveryRank) {
  const auto errors = on_ranks(3, {}, [&](Communicator& comm) {
    Faulty faulty(comm);
    EXPECT_FALSE(probe(faulty, {}, 5000, 0, 2).correct);
  });
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(Probe, BusFactorIsThatOfARing) {
  EXPECT_DOUBLE_EQ(bus_factor(1), 0);
  EXPECT_DOUBLE_EQ(bus_factor(2), 1);
  EXPECT_DOUBLE_EQ(bus_factor(4), 1.5);
}

}  // namespace
}  // namespace paceline::comm
