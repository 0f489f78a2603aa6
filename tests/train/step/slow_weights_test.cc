#include "train/step/slow_weights.h"

#include <gtest/gtest.h>

#include "engine/make.h"
#include "graph/zoo.h"

namespace paceline::train {
namespace {

/// An engine with a few weights, all of which a test sets.
struct Tiny {
  explicit Tiny(const char* device) {
    graph::Builder model("tiny");
    model.loss(model.dense(model.input({2, 1, 1}), "fc", {.features = 2}), 0);
    engine_ = engine::compile(device, model.finish(), {.batch = 1});
  }
  void set(float value) {
    engine_->fetch();
    std::ranges::fill(engine_->weights(), value);
    engine_->weights_changed();
  }
  float weight() {
    engine_->fetch();
    return engine_->weights().front();
  }
  std::unique_ptr<engine::Engine> engine_;
  measure::Ledger ledger_;
};
constexpr const char* kDevices[] = {"reference", "cpu", "cuda-on-host"};

TEST(SlowWeights, KeepAConstantOrGrowingPart) {
  EXPECT_EQ(kept_part({.steps = 5, .keep = 0.5}, 5, 100), 0.5);
  EXPECT_EQ(kept_part({.steps = 5, .keep = 0.8, .power = 3}, 50, 100), 0.1);
  EXPECT_EQ(kept_part({.steps = 5, .keep = 0.8, .power = 3}, 100, 100), 0.8);
}

TEST(SlowWeights, FollowEveryFewUpdates) {
  for (const char* device : kDevices) {
    Tiny tiny(device);
    SlowWeights slow({.steps = 3, .keep = 0.75}, {});
    tiny.set(8);
    slow.begin(*tiny.engine_);
    std::vector<std::int64_t> looks;
    for (std::int64_t done = 1; done <= 7; ++done) {
      tiny.set(tiny.weight() + 4);
      if (slow.is_due(done, 7)) looks.push_back(done);
      slow.follow_where_due(done, 7, *tiny.engine_, tiny.ledger_);
      slow.average(done, *tiny.engine_, tiny.ledger_);
    }
    EXPECT_EQ(looks, (std::vector<std::int64_t>{3, 6, 7}));
    // 8 -> 20: 11; 11 -> 23: 14; 14 -> 18: 15.
    EXPECT_EQ(tiny.weight(), 15);
    EXPECT_EQ(slow.values().front(), 15);
  }
}

TEST(SlowWeights, AverageBeginsWithTheFirstAndForgets) {
  for (const char* device : kDevices) {
    Tiny tiny(device);
    SlowWeights slow({}, {.decay = 0.75, .every = 2});
    tiny.set(100);
    slow.begin(*tiny.engine_);
    const auto average = [&] {
      slow.fetch();
      return slow.values().front();
    };
    EXPECT_EQ(average(), 100) << "before the first";
    std::vector<float> averages;
    for (std::int64_t done = 1; done <= 6; ++done) {
      tiny.set(static_cast<float>(done));
      slow.follow_where_due(done, 6, *tiny.engine_, tiny.ledger_);
      slow.average(done, *tiny.engine_, tiny.ledger_);
      averages.push_back(average());
    }
    // 2; 0.75 * 2 + 0.25 * 4; 0.75 * 2.5 + 0.25 * 6.
    EXPECT_EQ(averages, (std::vector<float>{100, 2, 2, 2.5, 2.5, 3.375}));
    EXPECT_EQ(tiny.weight(), 6) << "the training does not see it";
    slow.exchange(*tiny.engine_);
    EXPECT_EQ(tiny.weight(), 3.375);
    EXPECT_EQ(average(), 6);
    slow.exchange(*tiny.engine_);
    EXPECT_EQ(tiny.weight(), 6);
    EXPECT_EQ(average(), 3.375);
  }
}

TEST(SlowWeights, AreNothingWithoutOptions) {
  for (const char* device : kDevices) {
    Tiny tiny(device);
    SlowWeights slow({}, {});
    slow.begin(*tiny.engine_);
    EXPECT_TRUE(slow.values().empty());
    EXPECT_FALSE(slow.is_due(1, 1));
    EXPECT_FALSE(slow.has_average());
  }
}

}  // namespace
}  // namespace paceline::train
