#pragma once

/// Writes and reads checkpoints: weights, optimizer state and counters in one safetensors file
/// (docs/formats.md).
///
/// Tensors have PyTorch's names and shapes, including `num_batches_tracked` of every batch norm. Optimizer
/// state is `optimizer.<array>.<parameter>`, Lookahead's slow weights are `lookahead.<parameter>`, the
/// averages of --ema `ema.<parameter>`. The file does not depend on the number of workers, the time or the
/// machine: with --shard, runs with different numbers of workers write the same bytes.
///
/// A checkpoint contains a SHA-256 of all of its bytes, which is checked before its arrays are read.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "data/dataset.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "train/given/options.h"
#include "train/given/resolve.h"
#include "train/step/loss_guard.h"

namespace paceline::train {

/// DIR/checkpoint-00000812.safetensors, by updates done.
[[nodiscard]] std::filesystem::path checkpoint_path(const std::filesystem::path& directory,
                                                    std::int64_t update);

/// DIR/best-00000812.safetensors: the checkpoint of the best epoch on validation.
[[nodiscard]] std::filesystem::path best_checkpoint_path(const std::filesystem::path& directory,
                                                         std::int64_t update);

/// The number of updates in a checkpoint's file name; nothing for other files.
[[nodiscard]] std::optional<std::int64_t> update_of(const std::filesystem::path& path);

/// All checkpoints of a directory, newest (most updates) first; empty if there is no directory.
[[nodiscard]] std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& directory);

/// Names of links in a directory with checkpoints.
inline constexpr const char* kLatestLink = "latest.safetensors";
inline constexpr const char* kBestLink = "best.safetensors";

/// Makes the link DIR/`name` point to `target`, a file of the same directory. An existing link is replaced
/// atomically. Does nothing on a file system without links.
void link_to(const std::filesystem::path& target, const char* name);

/// Renames a damaged file to DIR/damaged-NAME, so that it is not used again; returns the new path, or the old
/// one if it cannot be renamed.
std::filesystem::path set_aside_damaged(const std::filesystem::path& file);

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
struct TrainingState {
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
  std::span<const float> slow_weights;                  ///< Lookahead's, or the average of --ema, or empty
  std::optional<engine::LossScale> loss_scale = {};     ///< of fp16
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
                      const Resolved& resolved, const TrainingState& standing);

/// Fills the engine's weights, optimizer state and loss scale, and `slow_weights` if not empty; calls
/// weights_changed().
///
/// Cost     reads the file twice: its checksum, its arrays
/// Errors   Error(data): the file is damaged, or of another model or optimizer, with the tensor and what was
///          expected
void read_checkpoint(const std::filesystem::path& path, engine::Engine& engine, std::span<float> slow_weights,
                     const Options& options);

/// Copies the weights of a checkpoint, including running statistics, to `weights` [layout.elements]: the
/// trained ones, or those that --ema averaged.
///
/// Errors   Error(data): the file is damaged, no checkpoint, of another model, with the tensor and what was
///          expected, or has no average
void read_weights(const std::filesystem::path& path, const graph::Graph& graph, const graph::Layout& layout,
                  std::span<float> weights, bool is_averaged = false);

/// The metadata of a checkpoint.
struct CheckpointInfo {
  std::filesystem::path path;
  std::string model, precision;  ///< "" in older checkpoints without these keys
  std::string graph;             ///< graph::canonical_text(), likewise
  std::int64_t updates = 0;
  data::DataIdentity data = {};  ///< without classes in older checkpoints
  engine::KernelAlgorithms
      algorithms;  ///< with which the run computed; empty in older checkpoints without this key
};
/// Reads the metadata of a file, or of a directory: of the best epoch on validation if the newest checkpoint
/// names one, else of the newest checkpoint.
///
/// Cost     the header only
/// Errors   Error(data): there is no checkpoint, or it is broken
[[nodiscard]] CheckpointInfo read_checkpoint_info(const std::filesystem::path& path);

// A copy of all arrays of a checkpoint, from which it is written while the training continues.

/// Threads  one calls take(); afterwards any number may read
class Snapshot {
 public:
  /// Copies `arrays`. The first call allocates; later ones reuse the memory.
  ///
  /// Cost     one copy: at about 5 GB/s, 20 ms for the 90 MB of a ResNet-18 with momentum
  void take(const TrainingArrays& arrays);
  /// The copy. Requires take().
  [[nodiscard]] const TrainingArrays& arrays() const { return arrays_; }

  /// Bytes of the copy.
  [[nodiscard]] static std::int64_t planned_bytes(const graph::Graph& graph, const Options& options);

 private:
  base::Buffer copy_;
  TrainingArrays arrays_;  ///< of the copy
};

/// Bytes of one checkpoint without its header: float weights, optimizer state, and slow weights if there are.
[[nodiscard]] std::int64_t checkpoint_bytes(const graph::Graph& graph, const Options& options);

/// A sentence if fewer than `files` files of `bytes` fit on the disk of `out`; nothing if they fit or the
/// system does not tell. If `out` does not exist, its nearest existing parent is asked.
[[nodiscard]] std::optional<std::string> lack_of_space(const std::filesystem::path& out, std::int64_t bytes,
                                                       int files);

}  // namespace paceline::train
