#pragma once

/// Optimizer performs an update on the device: it applies the update rule, updates running statistics, and
/// writes the copies of the weights that convolutions read.

#include <array>
#include <cstdint>
#include <vector>

#include "engine/cuda/kernels/update_tables.h"
#include "engine/cuda/program.h"
#include "engine/cuda/runtime/memory.h"
#include "graph/plan.h"

namespace paceline::engine::cuda {

/// The plan, line by line. It is exact except for one estimated line: a GPU's context, libraries and loaded
/// kernels. Each block on a GPU is rounded up to the units of its allocator. On the host runtime the device's
/// lines are host memory too.
[[nodiscard]] graph::MemoryPlan plan_of(const Program& program, const DeviceFacts& device);

struct DeviceLossScale;
class InputBuffers;
class StepReports;

/// The flat arrays on the device, and the scale of the gradients.
struct FlatArrays {
  float* weights = nullptr;
  float* gradients = nullptr;             ///< null without training
  std::vector<float*> state = {};         ///< by slot
  DeviceLossScale* loss_scale = nullptr;  ///< null: gradients are not scaled
};
/// Allocates all but the gradients.
[[nodiscard]] FlatArrays allocate_arrays(Runtime& runtime, const Program& program, float* gradients);

class Optimizer {
 public:
  /// Allocates and fills its tables on the device.
  Optimizer(const Program& program, Runtime& runtime, Stream compute, const DeviceMemory& memory,
            const Arena& arena, FlatArrays arrays, const StepReports& reports, const InputBuffers& inputs);

  // What differs between updates is in InputBuffers::update_numbers() before update() runs, which does work
  // that is the same each time and can be captured. In a queue it is copied there with the batch.

  /// The numbers of `update`, by slot.
  ///
  /// Requires  the engine was compiled for a rule with the same arrays of state
  [[nodiscard]] std::vector<UpdateNumbers> numbers_of(const StepUpdate& update) const;
  /// Copies them to the device, on the compute stream: for a step that is not in a queue. Waits for the copy
  /// of the update before.
  void put_numbers(const StepUpdate& update);
  /// Updates weights, state, running statistics and the copies of the weights. Changes nothing if the
  /// device's `is_halted` is not 0. With a rule that clips, the step's report gets the norm of the gradients,
  /// which are clipped in place. With a loss scale it judges the gradients, and changes the scale alone if
  /// they have overflowed.
  void update() const;
  /// Divides the gradients of [begin, end) by the loss scale, if there is one. Both ends lie between
  /// parameters.
  void unscale(std::int64_t begin, std::int64_t end) const;
  /// Adds the squares of the gradients of [begin, end) to `*sum`, on the compute stream (Engine's
  /// gradient_squares()).
  void add_squares(std::int64_t begin, std::int64_t end, double* sum) const;
  /// Rewrites the copies that convolutions read. Call it after the weights were written from outside.
  void pack() const { pack(layers_); }

  /// The device memory and pinned memory that an Optimizer for `program` allocates.
  [[nodiscard]] static std::int64_t bytes(const Program& program);
  [[nodiscard]] static std::int64_t pinned_bytes(const Program& program);

 private:
  /// Of the tables in one block of memory; that of the tiles is 0.
  struct Offsets {
    std::int64_t lars_chunks = 0, first_lars_chunk = 0, running = 0, norms = 0, rates = 0, layers = 0,
                 clip = 0, all = 0;
  };
  struct Tables;
  /// The first `count` layers, and the thread blocks that pack them.
  struct Layers {
    int count = 0, blocks = 0;
  };
  [[nodiscard]] static Tables tables_of(const Program& program);
  template <typename T>
  void put(std::int64_t offset, const std::vector<T>& values) const;
  template <typename T>
  [[nodiscard]] const T* at(std::int64_t offset) const {
    return reinterpret_cast<const T*>(memory_at_ + offset);
  }
  template <typename Rule>
  void launch(const double* rates) const;
  /// Whether an update is left out: on the device, not 0.
  [[nodiscard]] const std::int32_t* skips() const;
  void pack(const Layers& layers) const;
  /// The chunks of the gradient in [begin, end).
  struct Chunks {
    const LarsChunk* first = nullptr;
    int count = 0;
  };
  [[nodiscard]] Chunks chunks_in(std::int64_t begin, std::int64_t end) const;
  /// Enqueues their sums of squares, and returns where they will be.
  double* square(const Chunks& chunks) const;
  void judge_overflow() const;
  void clip() const;
  void compute_rates(double* rates) const;

  const Program& program_;
  Runtime& runtime_;
  const Stream compute_;
  const DeviceMemory& memory_;
  const FlatArrays arrays_;
  /// On the device, at addresses that stay the same.
  const struct Places {
    StepReport* report;
    const std::int32_t* is_halted;
    const StepNumbers* step;
    UpdateNumbers* update;  ///< by slot
  } places_;
  std::byte* memory_at_ = nullptr;
  std::byte* pinned_numbers_ = nullptr;  ///< of put_numbers()
  Event copied_;                         ///< whether they have been
  int tiles_ = 0, chunks_ = 0, running_ = 0;
  std::int64_t elements_ = 0;               ///< trainable elements
  std::vector<std::int64_t> chunk_begins_;  ///< of each chunk, in the flat arrays; they increase
  /// All layers, and the first ones, which update() packs with a kernel of their own.
  Layers layers_, apart_;
  Offsets offsets_;
};

}  // namespace paceline::engine::cuda
