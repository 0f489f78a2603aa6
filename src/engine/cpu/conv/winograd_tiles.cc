#include "engine/cpu/conv/winograd_tiles.h"

#include <algorithm>
#include <ranges>

#include "engine/cpu/tuning.h"

namespace paceline::engine::cpu {

using namespace winograd;

namespace {

/// Bytes of v and m (or z) that stay in the second-level cache; more if so few tiles would fit that reading
/// the weights would not pay (tiles_of_block()).
constexpr std::int64_t kBlockBytes = 448 << 10;

int rounded_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

const Transforms& transforms_of(const ConvShape& shape, const WinogradKernels& kernels) {
  const Strides& strides = shape.type == Storage::bf16 ? kernels.bf16 : kernels.f32;
  return shape.stride == 1 ? strides.stride1 : strides.stride2;
}

ImageView image(const graph::Shape& shape) { return {shape.height, shape.width, shape.channels}; }

int padding(const ConvShape& shape, Direction direction) {
  if (direction != Direction::backward_data) return shape.padding;
  return shape.stride == 1 ? 2 - shape.padding : 0;
}

/// Orders positions so that those with the same matrix follow each other.
template <typename Position>
std::vector<Position> by_matrix(int positions) {
  std::vector<Position> order;
  for (int p = 0; p < positions * positions; ++p)
    order.push_back({.number = p, .matrix = matrix_of(p, positions)});
  std::ranges::stable_sort(order, {}, &Position::matrix);
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i].is_first = i == 0 || order[i - 1].matrix != order[i].matrix;
    order[i].next_matrix = order[(i + 1) % order.size()].matrix;
  }
  return order;
}

}  // namespace

WinogradTiles::WinogradTiles(const ConvShape& shape, Direction direction, int width,
                             const WinogradKernels& kernels)
    : s_(shape),
      kernels_(kernels),
      direction_(direction),
      from_(direction == Direction::backward_data ? image(shape.dst) : image(shape.src)),
      to_(direction == Direction::backward_data ? image(shape.src) : image(shape.dst)),
      element_bytes_(bytes_of(shape.type)),
      transforms_(transforms_of(shape, kernels)),
      side_(direction == Direction::backward_data ? transforms_.backward : transforms_.forward),
      padding_(padding(shape, direction)),
      width_(width),
      tiles_down_((to_.height + side_.written_step - 1) / side_.written_step),
      tiles_across_((to_.width + side_.written_step - 1) / side_.written_step),
      order_(by_matrix<Position>(transforms_.positions)),
      block_(tiles_of_block()) {}

std::string WinogradTiles::name() const {
  return (s_.stride == 1 ? "own Winograd 4x4 " : "own Winograd 4x4 with stride 2 ") +
         std::string(name_of(kernels_.isa));
}

/// Few enough tiles to stay in the cache, and enough to be worth reading the weights again.
int WinogradTiles::tiles_of_block() const {
  const std::int64_t bytes = std::int64_t{4} * positions() * (from_.channels + width_);
  const int fitting = static_cast<int>(kBlockBytes / bytes) / kMultiplyRows * kMultiplyRows;
  const int groups = s_.stride > 1                               ? 2
                     : direction_ == Direction::backward_weights ? 4
                     : from_.channels > 128                      ? 8
                                                                 : 2;
  const int worth = groups * kMultiplyRows;
  return std::min(std::max(fitting, worth), rounded_up(tiles(), kMultiplyRows));
}

/// The position of a tile's first pixel, counted in pixels from the chunk's first; tiles are `step` apart. It
/// is exact for the first tile of a row and proportional within a row. For the tile after the last it is the
/// end of the chunk.
std::int64_t WinogradTiles::pixel(const ImageView& image, int step, int index) const {
  const Tile at = tile(index);
  const int row = std::min(image.height, at.row * step), column = std::min(image.width, at.column * step);
  const int rows = std::min(step, image.height - row);
  return (std::int64_t{1} * at.sample * image.height + row) * image.width + column * rows;
}

FetchAhead WinogradTiles::next_block(const Arrays& arrays, int first, int position) const {
  const int each = positions() / arrays.count, turn = position / arrays.count;
  if (turn >= each) return {};
  const Array& array = arrays.all[static_cast<std::size_t>(position % arrays.count)];
  const std::int64_t begin = pixel(*array.image, array.step, std::min(first + block_, tiles()));
  const std::int64_t end = begin + pixel(*array.image, array.step, block_);
  const std::int64_t bytes = element_bytes_ * array.image->channels, share = (end - begin) * bytes / each;
  return {reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(array.at) +
                                        static_cast<std::uintptr_t>(begin * bytes + share * turn)),
          share};
}

void WinogradTiles::transform_tiles(const void* src, int first, int count, float* v) const {
  for (int t = 0; t < count; ++t) {
    const Tile at = tile(first + t);
    side_.transform_input(sample(src, from_, at.sample), from_, at.row * side_.read_step - padding_,
                          at.column * side_.read_step - padding_, v + std::int64_t{1} * t * from_.channels,
                          v_stride());
  }
}

}  // namespace paceline::engine::cpu
