/// Squares of gradients in trainings, of which the noise scale is made (measure/noise_scale.h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/fixture.h"
#include "train/step/step.h"

namespace paceline::train {
namespace {

class NoiseSquares : public TrainingTest {
 protected:
  Options of(const std::string& device) const {
    Options options = small();
    options.device = device;
    options.noise_scale = 2;
    options.threads = 1;
    return options;
  }
  static std::vector<measure::GradientSquares> squares_of(const Options& options) {
    std::vector<measure::GradientSquares> all;
    for (const auto& epoch : train(options).epochs)
      if (epoch.gradient_squares) all.push_back(*epoch.gradient_squares);
    return all;
  }
  static void expect_near(const std::vector<measure::GradientSquares>& a,
                          const std::vector<measure::GradientSquares>& b, double tolerance) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t epoch = 0; epoch < a.size(); ++epoch) {
      EXPECT_EQ(a[epoch].small_batch, b[epoch].small_batch);
      EXPECT_EQ(a[epoch].large_batch, b[epoch].large_batch);
      ASSERT_EQ(a[epoch].small.size(), b[epoch].small.size());
      for (std::size_t i = 0; i < a[epoch].small.size(); ++i) {
        EXPECT_NEAR(a[epoch].small[i] / b[epoch].small[i], 1, tolerance);
        EXPECT_NEAR(a[epoch].large[i] / b[epoch].large[i], 1, tolerance);
      }
    }
  }
};

// Shards are the small batches, whoever computes them.
TEST_F(NoiseSquares, AreTheSameForAnyWorkers) {
  const auto reference = [&] {
    auto options = of("reference");
    options.shard = 4;
    return squares_of(options);
  }();
  ASSERT_EQ(reference.size(), 2);
  EXPECT_EQ(reference[0].small.size(), 3) << "updates 2, 4, 6";
  EXPECT_EQ(reference[1].small.size(), 2) << "updates 8, 10";
  EXPECT_EQ(reference[0].small_batch, 4);
  EXPECT_EQ(reference[0].large_batch, 16);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GT(reference[0].small[i], reference[0].large[i]);
  for (const char* device : {"cpu", "reference", "cuda-on-host"}) {
    Options options = of(device);
    options.shard = 4;
    const auto one = squares_of(options);
    expect_near(one, reference, 1e-3);
    for (const int workers : {2, 4}) {
      SCOPED_TRACE(testing::Message() << device << ", " << workers << " workers");
      options.workers = workers;
      expect_near(squares_of(options), one, 1e-6);
    }
  }
}

// Without shards the small batches are the workers'.
TEST_F(NoiseSquares, AreOfTheWorkersBatches) {
  for (const char* device : {"cpu", "cuda-on-host"}) {
    Options options = of(device);
    EXPECT_TRUE(squares_of(options).empty()) << "one batch alone says nothing";
    options.workers = 2;
    const auto two = squares_of(options);
    ASSERT_EQ(two.size(), 2);
    EXPECT_EQ(two[0].small_batch, 8);
    options.shard = 8;
    expect_near(squares_of(options), two, 1e-6);
    options.noise_scale = 0;
    EXPECT_TRUE(squares_of(options).empty());
  }
}

// The host waits for each step of a device where it takes part in it.
TEST_F(NoiseSquares, AreTheSameIfStepsWait) {
  Options options = of("cuda-on-host");
  options.workers = 2;
  const auto queued = squares_of(options);
  options.on_nan = OnNan::skip;
  expect_near(squares_of(options), queued, 1e-6);
}

TEST_F(NoiseSquares, ChangeNoBit) {
  for (const char* device : {"cpu", "cuda-on-host"}) {
    Options options = of(device);
    options.workers = 2;
    const auto measured = checkpoint_of(options, std::string(device) + "-measured");
    options.noise_scale = 0;
    EXPECT_EQ(checkpoint_of(options, std::string(device) + "-not"), measured);
  }
}

TEST_F(NoiseSquares, GoOnAfterAResume) {
  Options options = of("cpu");
  options.workers = 2;
  const auto whole = squares_of(options);
  options.out = directory_ / "parts";
  std::stop_source stop;
  Progress progress;
  progress.step = [&](std::int64_t step, std::int64_t, double, double) {
    if (step == 6) stop.request_stop();  // after update 7
  };
  EXPECT_EQ(train(options, stop.get_token(), progress).status, "interrupted");
  options.resume = options.out;
  const auto resumed = squares_of(options);
  ASSERT_EQ(resumed.size(), 2);
  EXPECT_EQ(resumed[0].small, whole[0].small) << "an earlier epoch is kept";
  EXPECT_EQ(resumed[1].small, whole[1].small) << "updates 8 and 10 are both of the second run";
}

}  // namespace
}  // namespace paceline::train
