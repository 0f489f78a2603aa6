#pragma once

/// Checkpoints: weights, optimizer state and counters in one safetensors file (docs/formats.md).
///
/// Tensors have PyTorch's names and shapes, `num_batches_tracked` of every batch norm included; optimizer
/// state is `optimizer.<array>.<parameter>`, Lookahead's slow weights are `lookahead.<parameter>`. Nothing in
/// the file depends on the number of workers, the time or the machine: with --shard two runs of different
/// width leave the same bytes.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
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

/// DIR/checkpoint-00000812.safetensors, by updates done.
[[nodiscard]] std::filesystem::path checkpoint_path(const std::filesystem::path& directory,
                                                    std::int64_t update);

/// DIR/best-00000812.safetensors: a checkpoint too, of the best epoch on validation.
[[nodiscard]] std::filesystem::path best_checkpoint_path(const std::filesystem::path& directory,
                                                         std::int64_t update);

/// Writes whole or not at all. `slow_weights`: Lookahead's, or empty. Requires: engine.fetch() was called.
/// Errors   Error(data) naming the file and the reason
void write_checkpoint(const std::filesystem::path& path, engine::Engine& engine,
                      std::span<float> slow_weights, const Options& options, const Resolved& resolved,
                      const Counters& counters, const ValidationState& validation = {});

/// Fills the engine's weights and optimizer state, and `slow_weights` where they are not empty; calls
/// weights_changed(). Errors   Error(data) when the file is of another model or optimizer: which tensor, what
/// was expected
void read_checkpoint(const std::filesystem::path& path, engine::Engine& engine, std::span<float> slow_weights,
                     const Options& options);

/// Copies the weights of a checkpoint, running statistics included, to `weights` [layout.elements].
/// Errors   Error(data) when the file is no checkpoint or of another model: which tensor, what was expected
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

/// Where a resumed run goes on.
struct ResumePoint {
  std::filesystem::path path;
  Counters counters;
  ValidationState validation;
  engine::KernelAlgorithms algorithms;  ///< of the run before; empty in checkpoints of before the key
  std::vector<std::string> notes;       ///< what this run does otherwise than the one before, and may
};

/// The checkpoint that options.resume names (the file, or the newest of a directory), once its header has
/// shown that this run can go on from it: the same layers, optimizer, seed, global batch and number of
/// training samples, so that the rest of the order is the one that the uninterrupted run would have had.
///
/// Cost     the header only
/// Errors   Error(data) when there is none, or one of these differs (both values); Error(usage) when nothing
///          is left to do; where a run in its own --out was lost after its last update, its record is
[[nodiscard]] ResumePoint find_resume_point(const Options& options, const Resolved& resolved,
                                            const graph::Graph& graph);

/// Whether options.resume is options.out or a file in it: the run continues its own directory.
[[nodiscard]] bool goes_on_in_place(const Options& options);

/// Refuses an output directory in which this run's files would stand beside another's: one that holds a
/// training and is not the one resumed, or is, from a checkpoint that is not its newest.
/// Errors   Error(usage) naming what is there and what to give instead
void require_own_directory(const Options& options);

/// All checkpoints of a directory, the newest (most updates) first; none where there is no directory.
[[nodiscard]] std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& directory);

}  // namespace paceline::train
