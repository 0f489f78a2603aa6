#pragma once

/// Writes and reads checkpoints: weights, optimizer state and counters in one safetensors file
/// (docs/formats.md).
///
/// Tensors have PyTorch's names and shapes, including `num_batches_tracked` of every batch norm. Optimizer
/// state is `optimizer.<array>.<parameter>`, Lookahead's slow weights are `lookahead.<parameter>`. The file
/// does not depend on the number of workers, the time or the machine: with --shard, runs with different
/// numbers of workers write the same bytes.
///
/// A checkpoint contains a SHA-256 of all of its bytes, which is checked before its arrays are read.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "train/checkpoint/checkpoint_files.h"
#include "train/given/options.h"
#include "train/given/resolve.h"
#include "train/step/loss_guard.h"
#include "train/step/validation_watch.h"

namespace paceline::train {

/// The position of a training; everything random is a function of it.
struct Counters {
  std::int64_t update = 0;  ///< updates done
  std::int64_t epoch = 0;   ///< of the next batch, from 0
  std::int64_t step = 0;    ///< of the next batch, within the epoch
};

/// The number (from 1) of the epoch that ended at `counters`, or that contains them.
[[nodiscard]] inline std::int64_t epoch_number(const Counters& counters) {
  return counters.step == 0 ? counters.epoch : counters.epoch + 1;
}

/// Everything in a checkpoint besides arrays. Trivially copyable, since it is broadcast.
struct Standing {
  Counters counters;
  ValidationState validation;
  GuardState guard;
};

/// Views of the arrays of a training: each [layout.elements], in the layout's order.
struct TrainingArrays {
  const graph::Graph* graph = nullptr;
  const graph::Layout* layout = nullptr;
  std::span<const float> weights;                       ///< running statistics included
  std::vector<std::span<const float>> optimizer_state;  ///< engine::state_slots() of them
  std::span<const float> slow_weights;                  ///< Lookahead's, or empty
};
/// The arrays of `engine`.
///
/// Requires  engine.fetch() was called
[[nodiscard]] TrainingArrays arrays_of(engine::Engine& engine, const engine::UpdateRule& rule,
                                       std::span<const float> slow_weights);

/// Writes a checkpoint, completely or not at all.
///
/// Errors   base::WriteError naming the file and the reason
void write_checkpoint(const std::filesystem::path& path, const TrainingArrays& arrays, const Options& options,
                      const Resolved& resolved, const Standing& standing);

/// Fills the engine's weights and optimizer state, and `slow_weights` if not empty; calls weights_changed().
///
/// Cost     reads the file twice: its checksum, its arrays
/// Errors   Error(data): the file is damaged, or of another model or optimizer, with the tensor and what was
///          expected
void read_checkpoint(const std::filesystem::path& path, engine::Engine& engine, std::span<float> slow_weights,
                     const Options& options);

/// Copies the weights of a checkpoint, including running statistics, to `weights` [layout.elements].
///
/// Errors   Error(data): the file is damaged, no checkpoint, or of another model, with the tensor and what
///          was expected
void read_weights(const std::filesystem::path& path, const graph::Graph& graph, const graph::Layout& layout,
                  std::span<float> weights);

/// The metadata of a checkpoint.
struct CheckpointInfo {
  std::filesystem::path path;
  std::string model, precision;  ///< "" in older checkpoints without these keys
  std::int64_t updates = 0;
  engine::KernelAlgorithms
      algorithms;  ///< with which the run computed; empty in older checkpoints without this key
};
/// Reads the metadata of a file, or of a directory: of the best epoch on validation if the newest checkpoint
/// names one, else of the newest checkpoint.
///
/// Cost     the header only
/// Errors   Error(data): there is no checkpoint, or it is broken
[[nodiscard]] CheckpointInfo read_checkpoint_info(const std::filesystem::path& path);

}  // namespace paceline::train
