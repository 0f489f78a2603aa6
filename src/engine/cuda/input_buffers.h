#pragma once

/// How a batch gets to the device: through pinned memory, on the stream of copies, into one of two sets.
///
/// While the backward pass of one step reads one set, the images of the next step go into the other. What a
/// set held two batches ago has been read: the engine waits for each batch's loss.

#include <cstdint>
#include <span>

#include "engine/cuda/kernels/step_numbers.h"
#include "engine/cuda/runtime.h"
#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

class InputBuffers {
 public:
  static constexpr int kSets = 2;
  /// For at most `samples` samples.
  InputBuffers(Runtime& runtime, Stream copies, const graph::Graph& graph, int samples);

  /// A batch on the device, for as long as no other but one is put behind it.
  struct Batch {
    const float* images = nullptr;         ///< [samples][H][W][C]
    const std::int32_t* labels = nullptr;  ///< one for each form of a sample
    const StepNumbers* numbers = nullptr;
    int set = 0;  ///< which of the kSets it lies in
  };
  /// Copies images, labels and numbers of a batch, and lets `reader` wait for them. The caller's memory is
  /// free when this returns.
  ///
  /// Requires what was put two calls ago has been read
  /// Errors   Error(data) for a label that is no class
  Batch put(const StepInput& input, Stream reader);

  /// What each of the two sets takes, on the device and of pinned memory alike.
  [[nodiscard]] static std::int64_t bytes_of_set(const graph::Graph& graph, int samples);

 private:
  struct Offsets {
    std::int64_t labels = 0, numbers = 0, all = 0;
  };
  [[nodiscard]] static Offsets offsets(const graph::Graph& graph, int samples);
  struct Set {
    std::byte* pinned = nullptr;
    std::byte* device = nullptr;
    Event copied;
  };
  void copy(const Set& set, std::int64_t offset, const void* from, std::int64_t bytes);

  Runtime& runtime_;
  const Stream copies_;
  const int classes_;
  const Offsets offsets_;
  Set sets_[kSets];
  int next_ = 0;
};

}  // namespace paceline::engine::cuda
