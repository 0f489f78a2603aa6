#pragma once

/// InputBuffers copies batches to the device, and with each what differs between steps: through pinned
/// memory, on the stream of copies, into one of three sets of buffers. All but the images is then copied to
/// one place, on the device, so that captured work finds it there in each step.
///
/// While a step reads one set, the next two batches are copied to the others. A set may be overwritten three
/// batches later if its step has read it by then. The engine ensures that by waiting for the loss, or by
/// collecting steps two steps late. For steps of several passes (--shard), put() waits itself.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/sample_draw.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/kernels/update.h"
#include "engine/cuda/runtime/memory.h"
#include "engine/cuda/runtime/runtime.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "graph/layout.h"

namespace paceline::engine::cuda {

// StoredImages keeps a data set's images on the device for the whole run. Steps refer to them by draws
// (base/sample_draw.h).

/// One block of device memory: a table of the value of each byte, fp32 [C][256], then images, uint8
/// [count][H][W][C].
class StoredImages {
 public:
  /// Allocates nothing if `count` is 0. `memory` must outlive this object.
  StoredImages(Runtime& runtime, const DeviceMemory& memory, const graph::Graph& graph, std::int64_t count);

  void set_byte_values(std::span<const float> values);
  /// Like Engine::store_images().
  void store(std::int64_t first, std::span<const std::uint8_t> pixels);
  /// Whether draws of image 0 are allowed although nothing may be stored; it is then black.
  void blacken(bool is_black);
  /// Ends the program if a draw names an image that was not stored, or reflects by more than an image.
  void check(std::span<const base::SampleDraw> draws) const;

  // Device addresses; null if `count` is 0.
  [[nodiscard]] const float* byte_values() const { return reinterpret_cast<const float*>(block_); }
  [[nodiscard]] const std::uint8_t* images() const { return reinterpret_cast<const std::uint8_t*>(images_); }

  /// Size of the block; 0 if `count` is 0.
  [[nodiscard]] static std::int64_t bytes(const graph::Graph& graph, std::int64_t count);

 private:
  [[nodiscard]] static std::int64_t table_bytes(int channels);

  const DeviceMemory& memory_;
  const graph::Shape shape_;     ///< of an image
  std::byte* block_ = nullptr;   ///< byte values, then
  std::byte* images_ = nullptr;  ///< images
  std::vector<bool> is_there_;   ///< [count]
  bool has_values_ = false;
  bool is_black_ = false;
};

class InputBuffers {
 public:
  static constexpr int kSets = 3;
  /// For batches of options.batch samples: their images, or draws where the device keeps images.
  InputBuffers(Runtime& runtime, Stream copies, const graph::Graph& graph, const graph::Layout& layout,
               const CompileOptions& options);

  /// A batch on the device. Valid until work is enqueued behind the next put().
  struct Batch {
    const float* images = nullptr;  ///< [samples][H][W][C]; null if there are draws
    // The same addresses for every batch.
    const base::SampleDraw* draws = nullptr;           ///< [samples]
    const std::int32_t* labels = nullptr;              ///< one for each sample, not for each view
    const base::SecondLabel* second_labels = nullptr;  ///< likewise; null if no step has them
    const StepNumbers* numbers = nullptr;
  };
  /// What is only known of a step in a queue.
  struct Queued {
    StepFlags flags;
    bool is_first_pass = true;                   ///< whether this is the first pass of its step
    StepReport* report = nullptr;                ///< StepNumbers::report
    std::span<const UpdateNumbers> update = {};  ///< of the update that follows, by slot
  };
  /// Copies the images or draws, the labels and the numbers of a batch, and makes `reader` wait for the
  /// copies. The caller may overwrite its memory after the call. Waits for `reader` if it has not yet read
  /// the batch of three calls ago.
  ///
  /// Errors   Error(data) for a label that is not a class
  Batch put(const StepInput& input, Stream reader, const Queued& queued);
  Batch put(const StepInput& input, Stream reader) { return put(input, reader, {}); }

  // On the device, the same addresses for every batch: the numbers of the step, and those of its update by
  // slot, which mean nothing after a put() without them.
  [[nodiscard]] const StepNumbers* step_numbers() const { return in_current<StepNumbers>(offsets_.numbers); }
  [[nodiscard]] UpdateNumbers* update_numbers() const { return in_current<UpdateNumbers>(offsets_.update); }

  [[nodiscard]] std::int64_t puts() const { return puts_; }
  /// Call it when readers have read the first `count` of the puts() batches.
  void have_been_read(std::int64_t count) { read_ = std::max(read_, count); }

  /// Of the parts of a set, which is `all` bytes large on the device and in pinned memory.
  struct Offsets {
    std::int64_t labels = 0, second_labels = 0, numbers = 0, update = 0, all = 0;
    std::int64_t current = 0;  ///< what is copied to one place begins here
    [[nodiscard]] std::int64_t bytes_of_current() const { return all - current; }
  };
  [[nodiscard]] static Offsets offsets(const graph::Graph& graph, const graph::Layout& layout,
                                       const CompileOptions& options);

 private:
  struct Set {
    std::byte* pinned = nullptr;
    std::byte* device = nullptr;
    Event copied, read;
  };
  /// The address of what begins at `offset` of the latest set, from Offsets::current on.
  template <typename T>
  [[nodiscard]] T* in_current(std::int64_t offset) const {
    return reinterpret_cast<T*>(current_ + (offset - offsets_.current));
  }
  [[nodiscard]] const Set& set(std::int64_t put) const { return sets_[put % kSets]; }

  Runtime& runtime_;
  const Stream copies_;
  const int classes_;
  const bool takes_draws_, has_two_labels_;
  const Offsets offsets_;
  Set sets_[kSets];
  std::byte* const current_;  ///< the end of the latest set, from Offsets::current on
  std::int64_t puts_ = 0;     ///< batches put so far
  std::int64_t read_ = 0;     ///< how many of these are known to be read
};

}  // namespace paceline::engine::cuda
