#pragma once

/// Kernels of the update rules of engine/update_rule.h, in fp32, with the same operations in the same order
/// as the cpu engine. One launch updates all parameters and rewrites the packed (reordered) weights that
/// convolutions read. update_tables.h makes the tables that the kernels read.
///
///     (lars: LarsNorms, lamb: LambNorms -> LarsRates ->) Update<Rule, T>, RunningStatistics
///
/// Both do nothing if the device decided to skip the update (JudgeVotes in step_report.h).

#include <cmath>
#include <tuple>

#include "engine/cuda/kernels/weights.h"

namespace paceline::engine::cuda {

/// A range of one parameter in the flat arrays, which one thread block updates. A tile of a layer's weight
/// contains whole vectors of the packed copy: all taps of input channels [in, in + ins) of the output
/// channels from `out` on. It is either several whole rows (output channels) or a part of one row.
struct UpdateTile {
  std::int64_t begin;  ///< in the flat arrays
  std::int32_t count;  ///< at most kMost
  std::int32_t slot;
  std::int32_t layer;         ///< index in Update::layers; -1: the update does not pack it
  std::int32_t out, in, ins;  ///< for a layer; `in` is a multiple of kVector
  static constexpr int kMost = 4096;
};

/// Whether a layer's weight can be cut into such tiles; otherwise PackWeights packs it after the update.
[[nodiscard]] inline bool fits_update_tiles(const WeightShape& shape) {
  if (shape.padded_ins % kVector != 0) return false;
  return std::int64_t{shape.ins < kVector ? shape.ins : kVector} * shape.taps <= UpdateTile::kMost;
}

/// The numbers of a parameter that a rule reads. update_numbers() computes them for each update.
struct UpdateNumbers {
  float lr, momentum, weight_decay;
  float beta1, beta2, rest1, rest2;  ///< rest = 1 - beta; beta1 is also rmsprop's alpha and adadelta's rho
  float epsilon;
  float step_size, inverse_root2;  ///< adam: lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t); lamb: without lr
  std::int32_t nesterov;
  std::int32_t is_lars_weight;          ///< lars, lamb: whether the parameter has a local rate
  double exact_lr, exact_decay, trust;  ///< lars; lamb: in LarsRates no decay, which its step contains, and 1
};

/// An element and its state, which a rule changes.
struct UpdateElement {
  float weight, gradient, first, second;
};

/// Which array of state holds an optional momentum.
enum class Momentum { none, first, second };

struct SgdRule {
  static constexpr bool kIsLars = false;
  static constexpr Momentum kMomentum = Momentum::first;
  PACELINE_HD static void apply(const UpdateNumbers& n, float, bool has_momentum, UpdateElement& e) {
    float d = e.gradient + n.weight_decay * e.weight;
    if (has_momentum) {
      e.first = n.momentum * e.first + d;
      d = n.nesterov != 0 ? d + n.momentum * e.first : e.first;
    }
    e.weight = e.weight - n.lr * d;
  }
};

template <bool kDecoupled>
struct AdamRule {
  static constexpr bool kIsLars = false;
  static constexpr Momentum kMomentum = Momentum::none;
  PACELINE_HD static void apply(const UpdateNumbers& n, float, bool, UpdateElement& e) {
    float d = e.gradient;
    if (kDecoupled)
      e.weight -= n.lr * n.weight_decay * e.weight;
    else
      d += n.weight_decay * e.weight;
    e.first = n.beta1 * e.first + n.rest1 * d;
    e.second = n.beta2 * e.second + n.rest2 * d * d;
    e.weight = e.weight - n.step_size * e.first / (std::sqrt(e.second) * n.inverse_root2 + n.epsilon);
  }
};

struct RmspropRule {
  static constexpr bool kIsLars = false;
  static constexpr Momentum kMomentum = Momentum::second;
  PACELINE_HD static void apply(const UpdateNumbers& n, float, bool has_momentum, UpdateElement& e) {
    const float d = e.gradient + n.weight_decay * e.weight;
    e.first = n.beta1 * e.first + n.rest1 * d * d;
    float step = d / (std::sqrt(e.first) + n.epsilon);
    if (has_momentum) {
      step = n.momentum * e.second + step;
      e.second = step;
    }
    e.weight = e.weight - n.lr * step;
  }
};

struct AdadeltaRule {
  static constexpr bool kIsLars = false;
  static constexpr Momentum kMomentum = Momentum::none;
  PACELINE_HD static void apply(const UpdateNumbers& n, float, bool, UpdateElement& e) {
    const float d = e.gradient + n.weight_decay * e.weight;
    e.first = n.beta1 * e.first + n.rest1 * d * d;
    const float step = std::sqrt(e.second + n.epsilon) / std::sqrt(e.first + n.epsilon) * d;
    e.second = n.beta1 * e.second + n.rest1 * step * step;
    e.weight = e.weight - n.lr * step;
  }
};

struct LarsRule {
  static constexpr bool kIsLars = true;
  static constexpr Momentum kMomentum = Momentum::none;
  PACELINE_HD static void apply(const UpdateNumbers& n, float lr, bool, UpdateElement& e) {
    const float d = e.gradient + n.weight_decay * e.weight;
    e.first = n.momentum * e.first + lr * d;
    e.weight = e.weight - e.first;
  }
};

struct LambRule {
  static constexpr bool kIsLars = true;
  static constexpr Momentum kMomentum = Momentum::none;
  /// Updates the moments; returns the step before its rate.
  PACELINE_HD static float step_of(const UpdateNumbers& n, UpdateElement& e) {
    e.first = n.beta1 * e.first + n.rest1 * e.gradient;
    e.second = n.beta2 * e.second + n.rest2 * e.gradient * e.gradient;
    const float step = n.step_size * e.first / (std::sqrt(e.second) * n.inverse_root2 + n.epsilon);
    return step + n.weight_decay * e.weight;
  }
  PACELINE_HD static void apply(const UpdateNumbers& n, float lr, bool, UpdateElement& e) {
    const float step = step_of(n, e);
    e.weight = e.weight - lr * step;
  }
};

/// By UpdateKind.
using UpdateRules =
    std::tuple<SgdRule, AdamRule<false>, AdamRule<true>, RmspropRule, AdadeltaRule, LarsRule, LambRule>;

/// Updates weights and state in place, and rewrites the packed copies of the weights. A block updates its
/// tile in the order of the flat arrays, and keeps the new weights in shared memory; from there it writes the
/// copy in the copy's order, so that all accesses are to whole cache lines. The padding of a copy is not
/// written.
///
/// Cost   bytes for each weight: 12, and 8 for each array of state, and 2 or 4 for the packed copy
template <typename Rule, typename T>
struct Update {
  const UpdateTile* tiles;  ///< [tile_count]
  int tile_count;
  std::int64_t elements;         ///< of all tiles
  const UpdateNumbers* numbers;  ///< by slot
  const double* lars_rates;      ///< by slot; null unless lars or lamb
  float* weights;                ///< flat arrays
  const float* gradients;
  float* first;  ///< the rule's first array of state; null: it has none
  float* second;
  const PackedWeight<T>* layers;            ///< by index of the layer; null: nothing is packed
  const std::int32_t* is_halted = nullptr;  ///< from JudgeVotes; null: always update

  [[nodiscard]] Grid grid() const {
    return {.blocks = tile_count,
            .threads = kMostThreads,
            .shared_bytes = layers != nullptr ? UpdateTile::kMost * static_cast<int>(sizeof(float)) : 0};
  }
  [[nodiscard]] PACELINE_HD int phases() const { return layers != nullptr ? 2 : 1; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    if (is_halted != nullptr && *is_halted != 0) return;
    const UpdateTile tile = tiles[at.block];
    if (phase == 0)
      update(tile, at, {layers != nullptr && tile.layer >= 0 ? shared : nullptr, tile.begin});
    else if (tile.layer >= 0)
      pack(tile, at, shared);
  }

 private:
  [[nodiscard]] PACELINE_HD bool has_momentum() const {
    return (Rule::kMomentum == Momentum::second ? second : first) != nullptr;
  }
  /// The tile's new weights, for pack(); null if the tile is not packed.
  struct Kept {
    float* values;
    std::int64_t begin;
    PACELINE_HD void put(std::int64_t i, float weight) const {
      if (values != nullptr) values[i - begin] = weight;
    }
  };
  PACELINE_HD void update(const UpdateTile& tile, const ThreadIndex& at, const Kept& kept) const {
    const UpdateNumbers n = numbers[tile.slot];
    const float lr = Rule::kIsLars ? static_cast<float>(n.exact_lr * lars_rates[tile.slot]) : n.lr;
    const std::int64_t end = tile.begin + tile.count;
    const std::int64_t whole = (tile.begin + 3) / 4 * 4, aligned = whole < end ? whole : end;
    for (std::int64_t i = tile.begin + at.thread; i < aligned; i += at.threads) update_one(n, lr, i, kept);
    std::int64_t i = aligned + 4 * at.thread;
    for (; i + 4 <= end; i += std::int64_t{4} * at.threads) update_four(n, lr, i, kept);
    for (; i < end; ++i)
      update_one(n, lr, i, kept);  // the last group, of fewer than four, belongs to one thread
  }
  PACELINE_HD void update_four(const UpdateNumbers& n, float lr, std::int64_t i, const Kept& kept) const {
    Float4 w = load4(weights + i), a{}, b{};
    const Float4 g = load4(gradients + i);
    if (first != nullptr) a = load4(first + i);
    if (second != nullptr) b = load4(second + i);
    PACELINE_UNROLL
    for (int k = 0; k < 4; ++k) {
      UpdateElement e{w.value[k], g.value[k], a.value[k], b.value[k]};
      Rule::apply(n, lr, has_momentum(), e);
      w.value[k] = e.weight;
      a.value[k] = e.first;
      b.value[k] = e.second;
      kept.put(i + k, e.weight);
    }
    store4(w, weights + i);
    if (first != nullptr) store4(a, first + i);
    if (second != nullptr) store4(b, second + i);
  }
  PACELINE_HD void update_one(const UpdateNumbers& n, float lr, std::int64_t i, const Kept& kept) const {
    UpdateElement e{weights[i], gradients[i], first != nullptr ? first[i] : 0,
                    second != nullptr ? second[i] : 0};
    Rule::apply(n, lr, has_momentum(), e);
    weights[i] = e.weight;
    if (first != nullptr) first[i] = e.first;
    if (second != nullptr) second[i] = e.second;
    kept.put(i, e.weight);
  }
  PACELINE_HD void pack(const UpdateTile& tile, const ThreadIndex& at, const float* kept) const {
    const PackedWeight<T> layer = layers[tile.layer];
    const int taps = layer.shape.taps, groups = (tile.ins + kVector - 1) / kVector;
    const int vectors = tile.count / (tile.ins * taps) * taps * groups;
    for (int v = at.thread; v < vectors; v += at.threads) {
      const int in = v % groups * kVector, tap = v / groups % taps, out = v / groups / taps;
      Float8 values{};
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k)
        if (in + k < tile.ins) values.value[k] = kept[(out * tile.ins + in + k) * taps + tap];
      store8(values,
             layer.dst + (std::int64_t{tile.out + out} * taps + tap) * layer.shape.padded_ins + tile.in + in);
    }
  }
};

/// running = (1 - momentum) * running + momentum * this step's batch statistic, in double.
struct RunningSlot {
  std::int64_t offset, elements;  ///< in the flat arrays
  double momentum;
};
struct RunningStatistics {
  const RunningSlot* slots;  ///< [slot_count]
  int slot_count;
  float* weights;
  const float* gradients;
  const std::int32_t* is_halted = nullptr;  ///< like Update::is_halted

  [[nodiscard]] Grid grid() const {
    return {.blocks = slot_count, .threads = kMostThreads, .shared_bytes = 0};
  }
  PACELINE_HD void run(const ThreadIndex& at) const {
    if (is_halted != nullptr && *is_halted != 0) return;
    const RunningSlot slot = slots[at.block];
    for (std::int64_t i = slot.offset + at.thread; i < slot.offset + slot.elements; i += at.threads)
      weights[i] = static_cast<float>((1 - slot.momentum) * static_cast<double>(weights[i]) +
                                      slot.momentum * static_cast<double>(gradients[i]));
  }
};

// Kernels that compute the local rate of LARS, trust * |w| / (|g| + decay * |w|), or of LAMB, |w| / |step|,
// for each parameter: LarsNorms or LambNorms computes sums of squares of parts (chunks) of each parameter.
// LarsRates adds the sums of a parameter's chunks and computes its rate.

/// A range of one parameter in the flat arrays. One thread block computes its sums of squares.
struct LarsChunk {
  std::int64_t begin;
  std::int32_t count;  ///< at most kMost
  std::int32_t slot;
  static constexpr int kMost = 4096;
};

/// The part of one thread of a block.
PACELINE_HD float sum_of_squares(const float* values, std::int32_t count, const ThreadIndex& at) {
  float sum = 0;
  PACELINE_UNROLL_4
  for (std::int32_t i = at.thread; i < count; i += at.threads) sum += values[i] * values[i];
  return sum;
}

/// Adds kSums sums of each thread of a block, one behind the other in `shared`, and writes them to `sums`.
template <int kSums>
struct ChunkSums {
  static constexpr int kSecond = 16;  ///< threads for each of the sums in phase 1
  [[nodiscard]] PACELINE_HD static Grid grid(int blocks) {
    return {.blocks = blocks,
            .threads = kMostThreads,
            .shared_bytes = kSums * kMostThreads * static_cast<int>(sizeof(float)) +
                            kSums * kSecond * static_cast<int>(sizeof(double))};
  }
  PACELINE_HD static float* of_threads(float* shared) {
    return shared + 2 * kSums * kSecond;
  }  // behind doubles
  /// Phases 1 and 2; in phase 0 the threads write of_threads().
  PACELINE_HD static void add(int phase, const ThreadIndex& at, float* shared, double* sums) {
    auto* second = reinterpret_cast<double*>(shared);
    const float* first = of_threads(shared);
    const int which = at.thread / kSecond, lane = at.thread % kSecond;
    if (phase == 1 && which < kSums) {
      double sum = 0;
      for (int i = lane; i < at.threads; i += kSecond)
        sum += static_cast<double>(first[which * kMostThreads + i]);
      second[at.thread] = sum;
    } else if (phase == 2 && at.thread < kSums) {
      double sum = 0;
      for (int i = 0; i < kSecond; ++i) sum += second[at.thread * kSecond + i];
      sums[at.thread] = sum;
    }
  }
};

/// Computes two sums for each chunk: of the squared weights and of the squared gradients.
///
/// Cost   reads the chunks of both arrays once
struct LarsNorms {
  const LarsChunk* chunks;  ///< [chunk_count]
  int chunk_count;
  const float* weights;
  const float* gradients;
  double* partial;  ///< [chunk_count][2]: of weights, of gradients

  [[nodiscard]] Grid grid() const { return ChunkSums<2>::grid(chunk_count); }
  [[nodiscard]] PACELINE_HD int phases() const { return 3; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    if (phase > 0) return ChunkSums<2>::add(phase, at, shared, partial + 2 * at.block);
    const LarsChunk chunk = chunks[at.block];
    float* sums = ChunkSums<2>::of_threads(shared);
    sums[at.thread] = sum_of_squares(weights + chunk.begin, chunk.count, at);
    sums[kMostThreads + at.thread] = sum_of_squares(gradients + chunk.begin, chunk.count, at);
  }
};

/// The same of the squared weights and of the squared steps that LambRule will take.
///
/// Cost   reads the chunks of four arrays once
struct LambNorms {
  const LarsChunk* chunks;  ///< [chunk_count]
  int chunk_count;
  const UpdateNumbers* numbers;  ///< by slot
  const float* weights;
  const float* gradients;
  const float* first;
  const float* second;
  double* partial;  ///< [chunk_count][2]: of weights, of steps

  [[nodiscard]] Grid grid() const { return ChunkSums<2>::grid(chunk_count); }
  [[nodiscard]] PACELINE_HD int phases() const { return 3; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    if (phase > 0) return ChunkSums<2>::add(phase, at, shared, partial + 2 * at.block);
    const LarsChunk chunk = chunks[at.block];
    const UpdateNumbers n = numbers[chunk.slot];
    float of_weights = 0, of_steps = 0;
    for (std::int64_t i = chunk.begin + at.thread; i < chunk.begin + chunk.count; i += at.threads) {
      UpdateElement e{weights[i], gradients[i], first[i], second[i]};
      const float step = LambRule::step_of(n, e);
      of_weights += e.weight * e.weight;
      of_steps += step * step;
    }
    float* sums = ChunkSums<2>::of_threads(shared);
    sums[at.thread] = of_weights;
    sums[kMostThreads + at.thread] = of_steps;
  }
};

/// Computes the rates, one thread block for each slot (parameter). The rate is 1 if the parameter is a bias
/// or belongs to batch norm, or if |w| or |g| is 0.
struct LarsRates {
  /// [slot_count + 1]: slot i has chunks [first_chunk[i], first_chunk[i + 1])
  const std::int32_t* first_chunk;
  int slot_count;
  const UpdateNumbers* numbers;  ///< by slot
  const double* partial;         ///< as LarsNorms wrote them
  double* rates;                 ///< [slot_count]

  static constexpr int kThreads = 32;
  [[nodiscard]] Grid grid() const {
    return {.blocks = slot_count,
            .threads = kThreads,
            .shared_bytes = 2 * kThreads * static_cast<int>(sizeof(double))};
  }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    auto* sums = reinterpret_cast<double*>(shared);
    if (phase == 0) {
      double weight = 0, gradient = 0;
      for (int c = first_chunk[at.block] + at.thread; c < first_chunk[at.block + 1]; c += kThreads) {
        weight += partial[2 * c];
        gradient += partial[2 * c + 1];
      }
      sums[2 * at.thread] = weight;
      sums[2 * at.thread + 1] = gradient;
    } else if (at.thread == 0) {
      double weight = 0, gradient = 0;
      for (int i = 0; i < kThreads; ++i) {
        weight += sums[2 * i];
        gradient += sums[2 * i + 1];
      }
      rates[at.block] = rate(numbers[at.block], std::sqrt(weight), std::sqrt(gradient));
    }
  }

 private:
  PACELINE_HD static double rate(const UpdateNumbers& n, double weight, double gradient) {
    // !(x <= 0), so that NaN stays NaN.
    return n.is_lars_weight != 0 && !(weight <= 0) && !(gradient <= 0)
               ? n.trust * weight / (gradient + n.exact_decay * weight)
               : 1;
  }
};

}  // namespace paceline::engine::cuda
