#include "engine/cpu/epilogue.h"

#include <algorithm>

namespace paceline::engine::cpu {
namespace {

constexpr int kGuessRows = 8;  // rows that the guess of the mean averages

/// Average of a few rows spread over all: near enough to the mean that the squares around it do not cancel.
void guess_mean(const Epilogue& e, const TypedKernels& kernels, Storage storage, const std::byte* first,
                std::int64_t rows, int channels) {
  const std::int64_t count = std::min<std::int64_t>(rows, kGuessRows);
  std::fill_n(e.shift, channels, 0.0f);
  std::fill_n(e.sums, 2 * channels, 0.0);
  for (std::int64_t i = 0; i < count; ++i)
    kernels.moments(first + rows * i / count * channels * bytes_of(storage), 1, channels, e.shift, e.sums);
  for (int c = 0; c < channels; ++c) e.shift[c] = static_cast<float>(e.sums[c] / static_cast<double>(count));
}

}  // namespace

void take_sums(const Epilogue& e, const TypedKernels& kernels, Storage storage, const std::byte* rows_written,
               std::int64_t rows, int channels) {
  if (e.what == Epilogue::Sums::moments) guess_mean(e, kernels, storage, rows_written, rows, channels);
  std::fill_n(e.sums, 2 * channels, 0.0);
  if (e.what == Epilogue::Sums::moments) {
    kernels.moments(rows_written, rows, channels, e.shift, e.sums);
    make_plain(e, rows, channels);
  } else {
    kernels.norm_backward_reduce(e.gradient, rows, channels, e.sums);
  }
}

void make_plain(const Epilogue& e, std::int64_t rows, int channels) {
  if (e.what != Epilogue::Sums::moments) return;
  for (int c = 0; c < channels; ++c) {
    const auto shift = static_cast<double>(e.shift[c]);
    e.sums[channels + c] += 2 * shift * e.sums[c] + static_cast<double>(rows) * shift * shift;
    e.sums[c] += static_cast<double>(rows) * shift;
  }
}

}  // namespace paceline::engine::cpu
