#pragma once

/// InputBuffers copies batches to the device: through pinned memory, on the stream of copies, into one of
/// three sets of buffers.
///
/// While a step reads one set, the next two batches are copied to the others. A set may be overwritten three
/// batches later if its step has read it by then. The engine ensures that by waiting for the loss, or by
/// collecting steps two steps late. For steps of several passes (--shard), put() waits itself.

#include <algorithm>
#include <cstdint>

#include "engine/cuda/kernels/step_numbers.h"
#include "engine/cuda/runtime/runtime.h"
#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

class InputBuffers {
 public:
  static constexpr int kSets = 3;
  /// For batches of options.batch samples: their images, or draws where the device keeps images.
  InputBuffers(Runtime& runtime, Stream copies, const graph::Graph& graph, const CompileOptions& options);

  /// A batch on the device. Valid until three more batches are put.
  struct Batch {
    const float* images = nullptr;            ///< [samples][H][W][C]; null if there are draws
    const base::SampleDraw* draws = nullptr;  ///< [samples]
    const std::int32_t* labels = nullptr;     ///< one for each sample, not for each view
    const StepNumbers* numbers = nullptr;
    int set = 0;  ///< index of its set, below kSets
  };
  /// Copies the images or draws, the labels and the numbers of a batch, and makes `reader` wait for the
  /// copies. The caller may overwrite its memory after the call. `is_first_pass`: whether this is the first
  /// pass of a step. Waits for `reader` if it has not yet read the batch of three calls ago.
  ///
  /// Errors   Error(data) for a label that is not a class
  Batch put(const StepInput& input, Stream reader, StepFlags flags = {}, bool is_first_pass = true);

  [[nodiscard]] std::int64_t puts() const { return puts_; }
  /// Call it when readers have read the first `count` of the puts() batches.
  void have_been_read(std::int64_t count) { read_ = std::max(read_, count); }

  /// Size of each set, on the device and in pinned memory.
  [[nodiscard]] static std::int64_t bytes_of_set(const graph::Graph& graph, const CompileOptions& options);

 private:
  struct Offsets {
    std::int64_t labels = 0, numbers = 0, all = 0;
  };
  [[nodiscard]] static Offsets offsets(const graph::Graph& graph, const CompileOptions& options);
  struct Set {
    std::byte* pinned = nullptr;
    std::byte* device = nullptr;
    Event copied, read;
  };
  [[nodiscard]] const Set& set(std::int64_t put) const { return sets_[put % kSets]; }
  void copy(const Set& set, std::int64_t offset, const void* from, std::int64_t bytes);

  Runtime& runtime_;
  const Stream copies_;
  const int classes_;
  const bool takes_draws_;
  const Offsets offsets_;
  Set sets_[kSets];
  std::int64_t puts_ = 0;  ///< batches put so far
  std::int64_t read_ = 0;  ///< how many of these are known to be read
};

}  // namespace paceline::engine::cuda
