#pragma once

/// How a batch gets to the device: through pinned memory, on the stream of copies, into one of three sets.
///
/// While a step reads one set, the images of the next two go into the others. What a set held three batches
/// ago has been read where the engine waits for a loss, or collects steps two steps late; steps of several
/// passes (--shard) are waited for here.

#include <algorithm>
#include <cstdint>

#include "engine/cuda/kernels/step_numbers.h"
#include "engine/cuda/runtime.h"
#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

class InputBuffers {
 public:
  static constexpr int kSets = 3;
  /// For batches of options.batch samples: their images, or draws where the device keeps images.
  InputBuffers(Runtime& runtime, Stream copies, const graph::Graph& graph, const CompileOptions& options);

  /// A batch on the device, for as long as no more than two others are put behind it.
  struct Batch {
    const float* images = nullptr;            ///< [samples][H][W][C]; or
    const base::SampleDraw* draws = nullptr;  ///< [samples]
    const std::int32_t* labels = nullptr;     ///< one for each form of a sample
    const StepNumbers* numbers = nullptr;
    int set = 0;  ///< which of the kSets it lies in
  };
  /// Copies images or draws, labels and numbers of a batch, and lets `reader` wait for them. The caller's
  /// memory is free when this returns.
  ///
  /// `is_first_pass`: of its step. Waits for `reader` where it has not read what was put three calls ago.
  /// Errors   Error(data) for a label that is no class
  Batch put(const StepInput& input, Stream reader, StepFlags flags = {}, bool is_first_pass = true);

  [[nodiscard]] std::int64_t puts() const { return puts_; }
  /// Readers are through with all but the latest `puts() - count` batches.
  void have_been_read(std::int64_t count) { read_ = std::max(read_, count); }

  /// What each of the sets takes, on the device and of pinned memory alike.
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
  std::int64_t puts_ = 0;  ///< so far,
  std::int64_t read_ = 0;  ///< of them known to be read
};

}  // namespace paceline::engine::cuda
