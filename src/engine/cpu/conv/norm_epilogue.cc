#include "engine/cpu/conv/norm_epilogue.h"

#include <algorithm>

namespace paceline::engine::cpu {
namespace {

constexpr int kGuessRows = 8;  // number of rows averaged for the guess of the mean

/// Guesses the mean as the average of a few rows spread over all. It is close enough that sums of squares
/// around it do not suffer from cancellation.
void guess_mean(const Epilogue& e, const TypedKernels& kernels, Storage storage, const std::byte* first,
                std::int64_t rows, int channels) {
  const std::int64_t count = std::min<std::int64_t>(rows, kGuessRows);
  std::fill_n(e.shift, channels, 0.0f);
  std::fill_n(e.sums, 2 * channels, 0.0);
  for (std::int64_t i = 0; i < count; ++i)
    kernels.moments(first + rows * i / count * channels * bytes_of(storage), 1, channels, e.shift, e.sums);
  for (int c = 0; c < channels; ++c) e.shift[c] = static_cast<float>(e.sums[c] / static_cast<double>(count));
}

/// The operands from row `first` on.
NormBackward from_row(const NormBackward& all, std::int64_t first, int channels, Storage storage) {
  const std::int64_t bytes = first * channels * bytes_of(storage);
  NormBackward rest = all;
  const auto advance = [&](const void*& values) {
    if (values != nullptr) values = static_cast<const std::byte*>(values) + bytes;
  };
  advance(rest.src);
  advance(rest.dst);
  advance(rest.d_dst);
  advance(rest.d_dst2);
  if (rest.d_masked != nullptr) rest.d_masked = static_cast<std::byte*>(rest.d_masked) + bytes;
  return rest;
}

}  // namespace

void begin_sums(const Epilogue& e, const TypedKernels& kernels, Storage storage, const std::byte* first_run,
                std::int64_t rows, int channels) {
  if (e.what == Epilogue::Sums::moments) guess_mean(e, kernels, storage, first_run, rows, channels);
  std::fill_n(e.sums, 2 * channels, 0.0);
}

void add_sums(const Epilogue& e, const TypedKernels& kernels, Storage storage, const std::byte* product,
              std::int64_t first, std::int64_t rows, int channels) {
  if (e.what == Epilogue::Sums::moments) {
    kernels.moments(product + first * channels * bytes_of(storage), rows, channels, e.shift, e.sums);
  } else {
    kernels.norm_backward_reduce(from_row(e.gradient, first, channels, storage), rows, channels, e.sums);
  }
}

void take_sums(const Epilogue& e, const TypedKernels& kernels, Storage storage, const std::byte* rows_written,
               std::int64_t rows, int channels) {
  begin_sums(e, kernels, storage, rows_written, rows, channels);
  add_sums(e, kernels, storage, rows_written, 0, rows, channels);
  make_plain(e, rows, channels);
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
