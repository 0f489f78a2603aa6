#pragma once

/// The images that a device keeps for the whole run, of which steps then name what they show.

#include <cstdint>
#include <span>
#include <vector>

#include "base/sample_draw.h"
#include "engine/cuda/memory.h"
#include "engine/cuda/runtime.h"
#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

/// Images uint8 [count][H][W][C], behind the values of their bytes, fp32 [C][256].
class StoredImages {
 public:
  /// Allocates nothing where `count` is 0. `memory` outlives this.
  StoredImages(Runtime& runtime, const DeviceMemory& memory, const graph::Graph& graph, std::int64_t count);

  void set_byte_values(std::span<const float> values);
  /// As Engine::store_images.
  void store(std::int64_t first, std::span<const std::uint8_t> pixels);
  /// Ends the program where a draw names an image that was not stored, or reflects further than an image.
  void check(std::span<const base::SampleDraw> draws) const;

  // On the device; null where it keeps none.
  [[nodiscard]] const float* byte_values() const { return reinterpret_cast<const float*>(block_); }
  [[nodiscard]] const std::uint8_t* images() const { return reinterpret_cast<const std::uint8_t*>(images_); }

  /// What they take on the device, in one block; 0 where `count` is 0.
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
