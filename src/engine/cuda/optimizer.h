#pragma once

/// What happens to the weights once an update: the rule, the running statistics, and the copies of the
/// weights that convolutions read.

#include <array>
#include <cstdint>
#include <vector>

#include "engine/cuda/kernels/update_tables.h"
#include "engine/cuda/memory.h"
#include "engine/cuda/program.h"

namespace paceline::engine::cuda {

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
            const Arena& arena, FlatArrays arrays, const std::int32_t* is_halted);

  // An update, on the compute stream: first what changes from one to the next, then the rest, which is the
  // same work each time and can be captured.

  /// Copies the numbers of update number `update`, from 1, to the device. Waits for the device where
  /// kNumberSets updates before this one are still in its queue.
  ///
  /// Requires   the engine was compiled for a rule with as much state
  void put_numbers(const UpdateRule& rule, double lr, std::int64_t update);
  /// Weights, state, running statistics and the weights' copies become new, by the numbers on the device.
  /// Where `is_halted`, on the device, is not 0 then, all stays as it is.
  void update() const;
  /// Copies the weights into the order and storage that convolutions read. After they were written from
  /// outside.
  void pack() const { pack(layers_); }

  /// What the tables of this program take on the device, and of pinned memory.
  [[nodiscard]] static std::int64_t bytes(const Program& program);
  [[nodiscard]] static std::int64_t pinned_bytes(const Program& program);

 private:
  struct Tables;
  /// Layers from the first one on, and the blocks that pack them.
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

  const Program& program_;
  Runtime& runtime_;
  const Stream compute_;
  const DeviceMemory& memory_;
  const FlatArrays arrays_;
  const std::int32_t* const is_halted_;
  std::byte* memory_at_ = nullptr;
  /// Numbers of the rule on their way to the device: the host goes on meanwhile.
  struct NumberSet {
    std::byte* pinned = nullptr;
    Event copied;
  };
  static constexpr int kNumberSets = 4;
  std::array<NumberSet, kNumberSets> number_sets_;
  std::size_t next_numbers_ = 0;
  int tiles_ = 0, lars_chunks_ = 0, running_ = 0;
  std::int64_t elements_ = 0;  ///< that learn
  Layers layers_, apart_;      ///< all, and the first ones, which the update does not pack
  // Offsets of the tables; that of tiles is 0.
  std::int64_t lars_chunks_at_ = 0, first_lars_chunk_at_ = 0, running_at_ = 0, numbers_at_ = 0, norms_at_ = 0,
               rates_at_ = 0, layers_at_ = 0;
};

}  // namespace paceline::engine::cuda
