#pragma once

/// Checkpoints: weights, optimizer state and counters in one safetensors file (docs/formats.md).
///
/// Tensors have PyTorch's names and shapes, `num_batches_tracked` of every batch norm included; optimizer
/// state is `optimizer.<array>.<parameter>`. Nothing in the file depends on the number of workers, the time
/// or the machine: with --shard two runs of different width leave the same bytes.

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/engine.h"
#include "train/options.h"
#include "train/resolve.h"

namespace paceline::train {

/// Where a training stands: everything random is a function of these.
struct Counters {
  std::int64_t update = 0;  ///< updates done
  std::int64_t epoch = 0;   ///< of the next batch, from 0
  std::int64_t step = 0;    ///< of the next batch, within the epoch
};

/// DIR/checkpoint-00000812.safetensors, by updates done.
[[nodiscard]] std::filesystem::path checkpoint_path(const std::filesystem::path& directory,
                                                    std::int64_t update);

/// Writes whole or not at all.
/// Errors   Error(data) naming the file and the reason
void write_checkpoint(const std::filesystem::path& path, engine::Engine& engine, const Options& options,
                      const Resolved& resolved, const Counters& counters);

/// Fills the engine's weights and optimizer state; calls weights_changed().
/// Errors   Error(data) when the file is of another model or optimizer (which tensor, what was expected), or
/// when it
///          ends inside an epoch that this run cuts differently
[[nodiscard]] Counters read_checkpoint(const std::filesystem::path& path, engine::Engine& engine,
                                       const Options& options, const Resolved& resolved);

/// `resume` itself, or the newest checkpoint (most updates) of a directory.
/// Errors   Error(data) when there is none
[[nodiscard]] std::filesystem::path find_checkpoint(const std::filesystem::path& resume);

/// Removes all but the newest `keep` checkpoints of `directory`.
void prune_checkpoints(const std::filesystem::path& directory, int keep);

}  // namespace paceline::train
