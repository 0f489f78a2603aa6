#include "engine/cpu/conv/bf16/window.h"

namespace paceline::engine::cpu {

int TileWindow::at(int to_at, int tap, int size) const {
  if (!is_rotated) {
    const int found = to_at * stride - padding + tap;
    return found >= 0 && found < size ? found : -1;
  }
  const int found = to_at + padding - tap;
  return found >= 0 && found % stride == 0 && found / stride < size ? found / stride : -1;
}

Range TileWindow::rows_read(Range rows) const {
  Range read{.begin = from.height, .end = 0};
  for (auto row = static_cast<int>(rows.begin); row < rows.end; ++row)
    for (int tap = 0; tap < kernel_height; ++tap) {
      const std::int64_t found = at(row, tap, from.height);
      if (found < 0) continue;
      read.begin = std::min(read.begin, found);
      read.end = std::max(read.end, found + 1);
    }
  return read.begin < read.end ? read : Range{};
}

int TileWindow::ring(int band, int parts) const {
  std::int64_t most = 1;
  for (int part = 0; part < parts; ++part) {
    const Range rows = range_of(to.height, part, parts);
    for (std::int64_t row = rows.begin; row < rows.end; row += band)
      most = std::max(most, rows_read({.begin = row, .end = std::min(row + band, rows.end)}).size());
  }
  return static_cast<int>(most);
}

int TileWindow::band(std::int64_t bytes_from_row, std::int64_t bytes_to_row, std::int64_t bytes) const {
  int best = 1;
  while (best < to.height && ring(best + 1) * bytes_from_row + (best + 1) * bytes_to_row <= bytes) ++best;
  return best;
}

TileWindow tile_window(const ConvShape& s, Direction direction) {
  TileWindow window{.from = s.src,
                    .to = s.dst,
                    .kernel_height = s.kernel,
                    .kernel_width = s.kernel,
                    .stride = s.stride,
                    .padding = s.padding};
  if (s.is_dense) {  // a window as large as the image
    window.kernel_height = s.src.height;
    window.kernel_width = s.src.width;
    window.stride = 1;
    window.padding = 0;
  }
  if (direction == Direction::backward_data) {
    window.is_rotated = true;
    std::swap(window.from, window.to);
  }
  window.stored = window.from;
  if (!window.is_rotated && window.taps() == 1 && window.padding == 0) {
    window.step = window.stride;
    window.stride = 1;
    window.from.height = window.to.height;
    window.from.width = window.to.width;
  }
  return window;
}

}  // namespace paceline::engine::cpu
