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

class StepReports;

/// The flat arrays on the device.
struct FlatArrays {
  float* weights = nullptr;
  float* gradients = nullptr;      ///< null without training
  std::vector<float*> state = {};  ///< by slot
};

class Optimizer {
 public:
  /// Allocates and fills its tables on the device.
  Optimizer(const Program& program, Runtime& runtime, Stream compute, const DeviceMemory& memory,
            const Arena& arena, FlatArrays arrays, const StepReports& reports);

  // An update is two calls, both on the compute stream: put_numbers() writes what differs between updates,
  // update() does work that is the same each time and can be captured.

  /// Copies rule, learning rate and number of the update (`update`, from 1) to the device. Waits for the
  /// device if it still has kNumberSets earlier updates in its queue.
  ///
  /// Requires  the engine was compiled for a rule with the same arrays of state
  void put_numbers(const UpdateRule& rule, double lr, std::int64_t update);
  /// Updates weights, state, running statistics and the copies of the weights, with the numbers of
  /// put_numbers(). Changes nothing if the device's `is_halted` is not 0. With a rule that clips, the step's
  /// report gets the norm of the gradients, which are clipped in place.
  void update() const;
  /// Rewrites the copies that convolutions read. Call it after the weights were written from outside.
  void pack() const { pack(layers_); }

  /// The device memory and pinned memory that an Optimizer for `program` allocates.
  [[nodiscard]] static std::int64_t bytes(const Program& program);
  [[nodiscard]] static std::int64_t pinned_bytes(const Program& program);

 private:
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
  template <typename T>
  void put_layers(const Arena& arena);
  template <typename Rule>
  void launch(const double* rates) const;
  void pack(const Layers& layers) const;
  void clip() const;
  void compute_rates(double* rates) const;

  const Program& program_;
  Runtime& runtime_;
  const Stream compute_;
  const DeviceMemory& memory_;
  const FlatArrays arrays_;
  StepReport* const report_;
  const std::int32_t* const is_halted_;
  std::byte* memory_at_ = nullptr;
  /// Numbers of an update on their way to the device, while the host continues.
  struct NumberSet {
    std::byte* pinned = nullptr;
    Event copied;
  };
  static constexpr int kNumberSets = 4;
  std::array<NumberSet, kNumberSets> number_sets_;
  std::size_t next_numbers_ = 0;
  int tiles_ = 0, chunks_ = 0, running_ = 0;
  std::int64_t elements_ = 0;  ///< trainable elements
  /// All layers, and the first ones, which update() packs with a kernel of their own.
  Layers layers_, apart_;
  // Offsets of the tables; that of the tiles is 0.
  std::int64_t lars_chunks_at_ = 0, first_lars_chunk_at_ = 0, running_at_ = 0, numbers_at_ = 0, norms_at_ = 0,
               rates_at_ = 0, layers_at_ = 0, clip_at_ = 0;
};

}  // namespace paceline::engine::cuda
