#include "engine/cuda/kernels/softmax_cross_entropy.h"

#include <numeric>
#include <tuple>

#include "engine/cuda/kernels/kernel_runs.h"
#include "engine/reference/ops.h"

namespace paceline::engine::cuda {
namespace {

template <typename T>
class CudaSoftmax : public ::testing::Test {
 protected:
  struct Results {
    LossResult sums{kNan, -1};
    std::vector<float> probabilities;
  };
  /// Logits [samples * views][classes].
  Results loss(Stored<T>& logits, const std::vector<std::int32_t>& labels, int views, int classes,
               double smoothing, const std::vector<double>& weights = {},
               const std::vector<base::SecondLabel>& second_labels = {}) {
    const auto samples = static_cast<int>(labels.size());
    Results results;
    results.probabilities.assign(labels.size() * static_cast<std::size_t>(classes), std::nanf(""));
    std::vector<SampleLoss> losses(labels.size(), {kNan, -1});
    run(SoftmaxLoss<T>{.logits = logits.data(),
                       .labels = labels.data(),
                       .probabilities = views == 1 ? results.probabilities.data() : nullptr,
                       .losses = losses.data(),
                       .samples = samples,
                       .views = views,
                       .classes = classes,
                       .padded = padded_channels(classes),
                       .label_smoothing = smoothing,
                       .class_weights = weights.empty() ? nullptr : weights.data(),
                       .sum_of_weights = std::accumulate(weights.begin(), weights.end(), 0.0),
                       .second_labels = second_labels.empty() ? nullptr : second_labels.data()},
        {output(losses), output(results.probabilities)});
    std::vector<LossResult> sums(1, results.sums);
    run(LossFold{losses.data(), samples, sums.data()}, {output(sums)});
    results.sums = sums[0];
    return results;
  }
  std::vector<std::int32_t> random_labels(int samples, int classes) {
    std::uniform_int_distribution<int> draw(0, classes - 1);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(samples));
    for (auto& label : labels) label = draw(generator_);
    return labels;
  }
  std::mt19937 generator_{13};
};
TYPED_TEST_SUITE(CudaSoftmax, Storages);

TYPED_TEST(CudaSoftmax, LossAndGradientAreTheReference) {
  for (const auto& [samples, classes] :
       {std::pair{1, 2}, {7, 10}, {300, 10}, {5, 17}, {3, 100}, {2, 1000}, {4, 1}})
    for (const auto& [smoothing, is_weighted, has_two_labels] : {std::tuple{0.0, false, false},
                                                                 {0.1, false, false},
                                                                 {0.0, true, false},
                                                                 {0.1, true, false},
                                                                 {0.0, false, true},
                                                                 {0.1, true, true}}) {
      const ImageShape shape{.samples = samples, .channels = classes};
      std::vector<double> logits = random_values<TypeParam>(this->generator_, shape.elements(), 1, 3);
      if (classes > 2) logits[1] = logits[2] = 20;  // the first of equals wins
      std::vector<std::int32_t> labels = this->random_labels(samples, classes);
      labels[0] = classes > 2 ? 1 : 0;
      std::vector<base::SecondLabel> second;
      std::uniform_real_distribution<float> share(0, 1);
      for (const std::int32_t label : this->random_labels(has_two_labels ? samples : 0, classes))
        second.push_back({label, share(this->generator_)});
      const reference::OpShapes shapes{.batch = samples, .src = shape.shape(), .dst = shape.shape()};
      std::vector<double> weights;
      for (int k = 0; is_weighted && k < classes; ++k) weights.push_back(0.25 + k % 3);
      const graph::SoftmaxCrossEntropy op{.label_smoothing = smoothing, .class_weights = weights};
      std::vector<double> probabilities(logits.size()), d_expected(logits.size(), 0.0);
      const LossSums expected = reference::softmax_cross_entropy_forward(
          shapes, op, logits.data(), std::span<const std::int32_t>(labels), probabilities.data(), nullptr,
          std::span<const base::SecondLabel>(second));
      reference::softmax_cross_entropy_backward(
          shapes, op, probabilities.data(), std::span<const std::int32_t>(labels), 0.25, d_expected.data(),
          std::span<const base::SecondLabel>(second));
      auto stored = to_storage<TypeParam>(shape, logits);
      const auto got = this->loss(stored, labels, 1, classes, smoothing, weights, second);
      // The order of the sum of exponentials may move a loss to the neighbouring multiple of 2^-24.
      EXPECT_NEAR(got.sums.loss, expected.loss, samples * 0x1p-24);
      EXPECT_EQ(std::fmod(got.sums.loss * 0x1p24, 1), 0);
      EXPECT_EQ(got.sums.correct, expected.correct);

      const StepNumbers step{.gradient_scale = 0.25};
      Stored<TypeParam> d_logits(shape.stored_elements());
      run(SoftmaxBackward<TypeParam>{got.probabilities.data(), labels.data(), d_logits.data(), &step, samples,
                                     classes, shape.padded(), smoothing,
                                     is_weighted ? weights.data() : nullptr,
                                     std::accumulate(weights.begin(), weights.end(), 0.0),
                                     has_two_labels ? second.data() : nullptr, nullptr},
          {d_logits.output()}, Blocks::any);
      expect_near<TypeParam>(from_storage(shape, d_logits), d_expected);
    }
}

TYPED_TEST(CudaSoftmax, JudgesASampleByTheMeanOfItsViews) {
  const int samples = 6, views = 3, classes = 11;
  const ImageShape shape{.samples = samples * views, .channels = classes};
  const std::vector<double> logits = random_values<TypeParam>(this->generator_, shape.elements());
  const std::vector<std::int32_t> labels = this->random_labels(samples, classes);
  std::vector<double> means(static_cast<std::size_t>(samples * classes)), probabilities(means.size());
  for (std::size_t i = 0; i < means.size(); ++i) {
    const std::size_t n = i / classes, k = i % classes;
    for (std::size_t v = 0; v < views; ++v) means[i] += logits[(n * views + v) * classes + k] / views;
  }
  const graph::Shape plane{.channels = classes};
  const LossSums expected = reference::softmax_cross_entropy_forward(
      {.batch = samples, .src = plane, .dst = plane}, {}, means.data(), std::span<const std::int32_t>(labels),
      probabilities.data(), nullptr);
  auto stored = to_storage<TypeParam>(shape, logits);
  const auto got = this->loss(stored, labels, views, classes, 0);
  EXPECT_NEAR(got.sums.loss, expected.loss, samples * 0x1p-24);
  EXPECT_EQ(got.sums.correct, expected.correct);
}

TYPED_TEST(CudaSoftmax, ABrokenLossShows) {
  for (const double bad : {kNan, std::numeric_limits<double>::infinity()}) {
    const ImageShape shape{.samples = 300, .channels = 10};
    std::vector<double> logits = random_values<TypeParam>(this->generator_, shape.elements());
    logits[1234] = bad;
    auto stored = to_storage<TypeParam>(shape, logits);
    EXPECT_FALSE(std::isfinite(this->loss(stored, this->random_labels(300, 10), 1, 10, 0).sums.loss));
  }
}

}  // namespace
}  // namespace paceline::engine::cuda
