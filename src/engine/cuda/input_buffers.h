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
  /// For batches of options.batch samples: their images, or draws where the device keeps images.
  InputBuffers(Runtime& runtime, Stream copies, const graph::Graph& graph, const CompileOptions& options);

  /// A batch on the device, for as long as no other but one is put behind it.
  struct Batch {
    const float* images = nullptr;            ///< [samples][H][W][C]; or
    const base::SampleDraw* draws = nullptr;  ///< [samples]
    const std::int32_t* labels = nullptr;     ///< one for each form of a sample
    const StepNumbers* numbers = nullptr;
  };
  /// Copies images or draws, labels and numbers of a batch, and lets `reader` wait for them. The caller's
  /// memory is free when this returns.
  ///
  /// Requires what was put two calls ago has been read
  /// Errors   Error(data) for a label that is no class
  Batch put(const StepInput& input, Stream reader);

  /// What each of the two sets takes, on the device and of pinned memory alike.
  [[nodiscard]] static std::int64_t bytes_of_set(const graph::Graph& graph, const CompileOptions& options);

 private:
  struct Offsets {
    std::int64_t labels = 0, numbers = 0, all = 0;
  };
  [[nodiscard]] static Offsets offsets(const graph::Graph& graph, const CompileOptions& options);
  struct Set {
    std::byte* pinned = nullptr;
    std::byte* device = nullptr;
    Event copied;
  };
  void copy(const Set& set, std::int64_t offset, const void* from, std::int64_t bytes);

  Runtime& runtime_;
  const Stream copies_;
  const int classes_;
  const bool takes_draws_;
  const Offsets offsets_;
  Set sets_[2];
  int next_ = 0;
};

}  // namespace paceline::engine::cuda
