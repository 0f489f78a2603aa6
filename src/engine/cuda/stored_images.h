#pragma once

/// StoredImages keeps a data set's images on the device for the whole run. Steps refer to them by draws
/// (base/sample_draw.h).

#include <cstdint>
#include <span>
#include <vector>

#include "base/sample_draw.h"
#include "engine/cuda/runtime/memory.h"
#include "engine/cuda/runtime/runtime.h"
#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

/// One block of device memory: a table of the value of each byte, fp32 [C][256], then images, uint8
/// [count][H][W][C].
class StoredImages {
 public:
  /// Allocates nothing if `count` is 0. `memory` must outlive this object.
  StoredImages(Runtime& runtime, const DeviceMemory& memory, const graph::Graph& graph, std::int64_t count);

  void set_byte_values(std::span<const float> values);
  /// Like Engine::store_images().
  void store(std::int64_t first, std::span<const std::uint8_t> pixels);
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
  const int height_, width_, channels_;
  std::byte* block_ = nullptr;   ///< byte values, then
  std::byte* images_ = nullptr;  ///< images
  std::vector<bool> is_there_;   ///< [count]
  bool has_values_ = false;
};

}  // namespace paceline::engine::cuda
