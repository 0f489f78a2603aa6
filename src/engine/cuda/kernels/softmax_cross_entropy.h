#pragma once

/// Kernels of softmax and cross-entropy loss with label smoothing. They compute in double: a batch has few
/// logits, and sums must be exact.
///
/// With smoothing e and K classes the target is (1 - e) on the label plus e / K on every class. Weights of
/// classes multiply it, and mixed images have two labels (engine/reference/ops.h).
///
///     SoftmaxLoss -> LossFold -> (copy of LossResult to the host) ... SoftmaxBackward
///
/// Shapes   logits, d_logits [N][padded] in storage T, padded = classes rounded up to a multiple of 8

#include <cmath>

#include "base/sample_draw.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/loss_scale.h"

namespace paceline::engine::cuda {

/// The result of a sample: its loss, rounded to a multiple of 2^-24 so that sums in double are exact in any
/// order (NaN and infinity stay), and whether the largest logit is the (heavier) label's (1 or 0).
struct SampleLoss {
  double loss;
  std::int64_t correct;
};

/// Computes the loss of each sample. lanes() threads share a sample.
///
/// Requires   0 <= label < classes, also of second labels (the host checks)
/// Cost       some microseconds for 512 x 10 or 256 x 1000 logits
template <typename T>
struct SoftmaxLoss {
  const T* logits;             ///< [samples * views][padded]
  const std::int32_t* labels;  ///< [samples]
  float* probabilities;        ///< [samples][classes] for backward, only with 1 view; null: not stored
  SampleLoss* losses;          ///< [samples]
  int samples, views;          ///< the loss of a sample is that of the mean of its views' logits
  int classes, padded;
  double label_smoothing;
  const double* class_weights;  ///< [classes]; null: each is 1
  double sum_of_weights;
  const base::SecondLabel* second_labels = nullptr;  ///< [samples]; null: each sample has one label

  /// The number of threads that share a sample: a power of two.
  [[nodiscard]] PACELINE_HD int lanes() const {
    int lanes = 1;
    while (lanes < classes && lanes < 64) lanes *= 2;
    return lanes;
  }
  static constexpr int kThreads = 64;
  /// What the threads of a block pass to each other.
  struct Shared {
    double largest[kThreads];       ///< the largest of the thread's logits
    std::int32_t place[kThreads];   ///< its class
    double exponentials[kThreads];  ///< sum of exp(logit - largest of the sample)
    double differences[kThreads];   ///< sum of logit - largest of the sample, each times its class's weight
  };
  [[nodiscard]] Grid grid() const {
    const int of_block = kThreads / lanes();
    return {.blocks = (samples + of_block - 1) / of_block,
            .threads = kThreads,
            .shared_bytes = static_cast<int>(sizeof(Shared))};
  }
  [[nodiscard]] PACELINE_HD int phases() const { return 3; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* memory) const {
    auto& shared = *reinterpret_cast<Shared*>(memory);
    const int lane = at.thread % lanes();
    const int sample = at.block * (at.threads / lanes()) + at.thread / lanes();
    if (sample >= samples) return;
    if (phase == 0)
      find_largest(sample, lane, at.thread, shared);
    else if (phase == 1)
      add_exponentials(sample, lane, at.thread, shared);
    else
      finish(sample, lane, at.thread, shared);
  }

 private:
  /// Mean over the sample's views.
  [[nodiscard]] PACELINE_HD double logit(int sample, int k) const {
    double sum = 0;
    for (int view = 0; view < views; ++view)
      sum += static_cast<double>(load(logits[(std::int64_t{sample} * views + view) * padded + k]));
    return views == 1 ? sum : sum / views;
  }
  PACELINE_HD void find_largest(int sample, int lane, int thread, Shared& shared) const {
    std::int32_t place = lane < classes ? lane : 0;
    double largest = logit(sample, place);
    for (int k = lane + lanes(); k < classes; k += lanes()) {
      const double value = logit(sample, k);
      if (value > largest) {
        largest = value;
        place = k;
      }
    }
    shared.largest[thread] = largest;
    shared.place[thread] = place;
  }
  /// The thread with the sample's largest logit; the smallest class if several are equal.
  [[nodiscard]] PACELINE_HD int winner(int lane, int thread, const Shared& shared) const {
    int winner = thread - lane;
    for (int i = winner + 1; i < thread - lane + lanes(); ++i)
      if (shared.largest[i] > shared.largest[winner] ||
          (shared.largest[i] == shared.largest[winner] && shared.place[i] < shared.place[winner]))
        winner = i;
    return winner;
  }
  PACELINE_HD void add_exponentials(int sample, int lane, int thread, Shared& shared) const {
    const double largest = shared.largest[winner(lane, thread, shared)];
    double exponentials = 0, differences = 0;
    for (int k = lane; k < classes; k += lanes()) {
      const double difference = logit(sample, k) - largest;
      differences += class_weights == nullptr ? difference : class_weights[k] * difference;
      exponentials += std::exp(difference);
    }
    shared.exponentials[thread] = exponentials;
    shared.differences[thread] = differences;
  }
  /// The loss if `label` has all of the target, without what smoothing spreads.
  [[nodiscard]] PACELINE_HD double loss_of(int sample, std::int32_t label, double log_total,
                                           double largest) const {
    const double class_weight = class_weights == nullptr ? 1.0 : class_weights[label];
    return (1 - label_smoothing) * class_weight * (log_total - (logit(sample, label) - largest));
  }
  PACELINE_HD void finish(int sample, int lane, int thread, const Shared& shared) const {
    const int first = thread - lane, best = winner(lane, thread, shared);
    const double largest = shared.largest[best];
    double total = 0, differences = 0;
    for (int i = first; i < first + lanes(); ++i) {
      total += shared.exponentials[i];
      differences += shared.differences[i];
    }
    if (probabilities != nullptr)
      for (int k = lane; k < classes; k += lanes())
        probabilities[std::int64_t{sample} * classes + k] =
            static_cast<float>(std::exp(logit(sample, k) - largest) / total);
    if (lane != 0) return;
    const double log_total = std::log(total);
    std::int32_t heavier = labels[sample];
    double loss = loss_of(sample, heavier, log_total, largest);
    if (second_labels != nullptr && second_labels[sample].weight > 0) {
      const std::int32_t second = second_labels[sample].label;
      const auto weight = static_cast<double>(second_labels[sample].weight);
      loss = (1 - weight) * loss + weight * loss_of(sample, second, log_total, largest);
      if (weight > 0.5) heavier = second;
    }
    if (class_weights == nullptr)
      loss += label_smoothing * (log_total - differences / classes);  // mean of -log p over the classes
    else
      loss += label_smoothing * (sum_of_weights * log_total - differences) / classes;
    losses[sample] = {nearbyint(loss * 16777216.0) * (1 / 16777216.0), shared.place[best] == heavier ? 1 : 0};
  }
};

/// The sums over the samples of a pass, for the host.
struct LossResult {
  double loss;
  std::int64_t correct;
};

/// Adds the losses of all samples, in one block.
///
/// Cost   some microseconds
struct LossFold {
  const SampleLoss* losses;  ///< [samples]
  int samples;
  LossResult* result;

  [[nodiscard]] Grid grid() const {
    return {.blocks = 1,
            .threads = kMostThreads,
            .shared_bytes = kMostThreads * static_cast<int>(sizeof(SampleLoss))};
  }
  [[nodiscard]] PACELINE_HD int phases() const { return 3; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* memory) const {
    constexpr int kSecond = 16;  // threads of the second phase
    auto* shared = reinterpret_cast<SampleLoss*>(memory);
    if (phase == 0)
      shared[at.thread] = sum_of(losses, at.thread, samples, at.threads);
    else if (phase == 1 && at.thread < kSecond)
      shared[at.thread] = sum_of(shared, at.thread, at.threads, kSecond);
    else if (phase == 2 && at.thread == 0) {
      const SampleLoss sum = sum_of(shared, 0, kSecond, 1);
      *result = {sum.loss, sum.correct};
    }
  }

 private:
  /// The sum of elements first, first + step, ... < end.
  PACELINE_HD static SampleLoss sum_of(const SampleLoss* from, int first, int end, int step) {
    SampleLoss sum{0, 0};
    for (int i = first; i < end; i += step) {
      sum.loss += from[i].loss;
      sum.correct += from[i].correct;
    }
    return sum;
  }
};

/// d_logits = (probabilities * sum of weighted targets - weighted target) * gradient_scale, times the loss
/// scale; 0 in padding.
///
/// Cost   reads the probabilities once, writes d_logits once
template <typename T>
struct SoftmaxBackward {
  const float* probabilities;  ///< [samples][classes]
  const std::int32_t* labels;  ///< [samples]
  T* d_logits;
  const StepNumbers* step;
  int samples, classes, padded;
  double label_smoothing;
  const double* class_weights;  ///< [classes]; null: each is 1
  double sum_of_weights;
  const base::SecondLabel* second_labels = nullptr;  ///< [samples]; null: each sample has one label
  const LossScale* loss_scale = nullptr;             ///< null: 1

  [[nodiscard]] Grid grid() const { return grid_for(std::int64_t{samples} * padded); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const double everywhere = label_smoothing / classes;
    const double scale =
        step->gradient_scale * (loss_scale == nullptr ? 1 : static_cast<double>(loss_scale->scale));
    for (std::int64_t i = at.global(); i < std::int64_t{samples} * padded; i += at.global_count()) {
      const std::int64_t sample = i / padded;
      const int k = static_cast<int>(i % padded);
      float d = 0;
      if (k < classes) {
        const std::int32_t label = labels[sample];
        const base::SecondLabel second =
            second_labels == nullptr ? base::SecondLabel{label, 0} : second_labels[sample];
        const auto weight = static_cast<double>(second.weight);
        const double share = (label == k ? 1 - weight : 0.0) + (second.label == k ? weight : 0.0);
        double target = everywhere + (1 - label_smoothing) * share, total = 1;
        if (class_weights != nullptr) {
          target *= class_weights[k];
          double of_labels = class_weights[label];
          if (weight > 0) of_labels = (1 - weight) * of_labels + weight * class_weights[second.label];
          total = (1 - label_smoothing) * of_labels + everywhere * sum_of_weights;
        }
        d = static_cast<float>((static_cast<double>(probabilities[sample * classes + k]) * total - target) *
                               scale);
      }
      store(d, d_logits[i]);
    }
  }
};

}  // namespace paceline::engine::cuda
