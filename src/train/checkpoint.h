#pragma once

/// Checkpoints: weights, optimizer state and counters in one safetensors file (docs/formats.md).
///
/// Tensors have PyTorch's names and shapes, `num_batches_tracked` of every batch norm included; optimizer
/// state is `optimizer.<array>.<parameter>`, Lookahead's slow weights are `lookahead.<parameter>`. Nothing in
/// the file depends on the number of workers, the time or the machine: with --shard two runs of different
/// width leave the same bytes.
///
/// A checkpoint carries a SHA-256 of all of its bytes, and what reads its arrays checks it first.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "train/checkpoint_files.h"
#include "train/loss_guard.h"
#include "train/options.h"
#include "train/resolve.h"
#include "train/validation_watch.h"

namespace paceline::train {

/// Where a training stands: everything random is a function of these.
struct Counters {
  std::int64_t update = 0;  ///< updates done
  std::int64_t epoch = 0;   ///< of the next batch, from 0
  std::int64_t step = 0;    ///< of the next batch, within the epoch
};

/// The number (from 1) of the epoch that ended with `counters`, or that they lie in.
[[nodiscard]] inline std::int64_t epoch_number(const Counters& counters) {
  return counters.step == 0 ? counters.epoch : counters.epoch + 1;
}

/// All that a checkpoint holds besides arrays. Trivially copyable: it is broadcast.
struct Standing {
  Counters counters;
  ValidationState validation;
  GuardState guard;
};

/// The arrays of a training, which belong to somebody else: each [layout.elements], in the layout's order.
struct TrainingArrays {
  const graph::Graph* graph = nullptr;
  const graph::Layout* layout = nullptr;
  std::span<const float> weights;                       ///< running statistics included
  std::vector<std::span<const float>> optimizer_state;  ///< engine::state_slots() of them
  std::span<const float> slow_weights;                  ///< Lookahead's, or empty
};
/// Those of `engine`. Requires: engine.fetch() was called.
[[nodiscard]] TrainingArrays arrays_of(engine::Engine& engine, const engine::UpdateRule& rule,
                                       std::span<const float> slow_weights);

/// Writes whole or not at all.
/// Errors   base::WriteError naming the file and the reason
void write_checkpoint(const std::filesystem::path& path, const TrainingArrays& arrays, const Options& options,
                      const Resolved& resolved, const Standing& standing);

/// Fills the engine's weights and optimizer state, and `slow_weights` where they are not empty; calls
/// weights_changed().
///
/// Cost     reads the file twice: its checksum, its arrays
/// Errors   Error(data) when the file is damaged, or of another model or optimizer: which tensor, what was
///          expected
void read_checkpoint(const std::filesystem::path& path, engine::Engine& engine, std::span<float> slow_weights,
                     const Options& options);

/// Copies the weights of a checkpoint, running statistics included, to `weights` [layout.elements].
/// Errors   Error(data) when the file is damaged, no checkpoint, or of another model: which tensor, what was
///          expected
void read_weights(const std::filesystem::path& path, const graph::Graph& graph, const graph::Layout& layout,
                  std::span<float> weights);

/// What a checkpoint says of itself.
struct CheckpointInfo {
  std::filesystem::path path;
  std::string model, precision;  ///< "" in checkpoints of before the key
  std::int64_t updates = 0;
  engine::KernelAlgorithms
      algorithms;  ///< that the run computed with; empty in checkpoints of before the key
};
/// Of a directory: of the best epoch on validation where its newest checkpoint names one, else of the newest.
///
/// Cost     the header only
/// Errors   Error(data): no checkpoint there, or a broken one
[[nodiscard]] CheckpointInfo read_checkpoint_info(const std::filesystem::path& path);

}  // namespace paceline::train
