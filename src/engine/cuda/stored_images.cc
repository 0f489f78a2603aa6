#include "engine/cuda/stored_images.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "engine/memory_requests.h"

namespace paceline::engine::cuda {

StoredImages::StoredImages(Runtime& runtime, const DeviceMemory& memory, const graph::Graph& graph,
                           std::int64_t count)
    : memory_(memory),
      height_(graph.input_shape().height),
      width_(graph.input_shape().width),
      channels_(graph.input_shape().channels),
      is_there_(static_cast<std::size_t>(count)) {
  if (count == 0) return;
  block_ = runtime.allocate(static_cast<std::size_t>(bytes(graph, count)));
  images_ = block_ + table_bytes(channels_);
}

std::int64_t StoredImages::table_bytes(int channels) {
  return whole_lines(std::int64_t{256} * channels * static_cast<std::int64_t>(sizeof(float)));
}

std::int64_t StoredImages::bytes(const graph::Graph& graph, std::int64_t count) {
  if (count == 0) return 0;
  return table_bytes(graph.input_shape().channels) + count * graph.input_shape().elements();
}

void StoredImages::set_byte_values(std::span<const float> values) {
  base::expects(block_ != nullptr && values.size() == 256 * static_cast<std::size_t>(channels_),
                "the engine keeps images, and there is a value for each byte of each channel");
  memory_.upload(block_, values.data(), values.size_bytes());
  has_values_ = true;
}

void StoredImages::store(std::int64_t first, std::span<const std::uint8_t> pixels) {
  const auto image = static_cast<std::size_t>(height_) * static_cast<std::size_t>(width_) *
                     static_cast<std::size_t>(channels_);
  const auto count = static_cast<std::int64_t>(pixels.size() / image);
  base::expects(pixels.size() % image == 0 && first >= 0 &&
                    first + count <= static_cast<std::int64_t>(is_there_.size()),
                "whole images are stored, where the engine has room for them");
  memory_.upload(images_ + first * static_cast<std::int64_t>(image), pixels.data(), pixels.size());
  std::fill_n(is_there_.begin() + first, count, true);
}

void StoredImages::check(std::span<const base::SampleDraw> draws) const {
  base::expects(has_values_, "the values of bytes are set before images are shown");
  for (const base::SampleDraw& draw : draws) {
    base::expects(draw.index >= 0 && static_cast<std::size_t>(draw.index) < is_there_.size() &&
                      is_there_[static_cast<std::size_t>(draw.index)],
                  "a draw names an image that was stored");
    base::expects(draw.reflects == 0 || (std::abs(draw.shift_y) < height_ && std::abs(draw.shift_x) < width_),
                  "a draw reflects less than an image");
  }
}

}  // namespace paceline::engine::cuda
