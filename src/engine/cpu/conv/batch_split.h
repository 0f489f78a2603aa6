#pragma once

/// One direction of a convolution over a whole batch: chunks of samples, each a kernel's, to be shared by
/// threads.
///
/// The first chunks have the same number of samples; the last may be shorter and then has a kernel of its
/// own, which works on the same packed weights: no batch size is slower than its neighbours.
///
/// Threads  run() from any number of threads at a time, each on its own task

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "engine/cpu/conv/kernel.h"

namespace paceline::engine::cpu {

/// Samples of a chunk of direction `direction`: by the shape (whose samples are the batch), so that any
/// number of threads, on any machine, cuts the same way.
[[nodiscard]] int samples_of_chunk(const ConvShape& batch, Direction direction);

/// A batch in chunks.
class BatchSplit {
 public:
  /// Errors   a failed expectation unless both are at least 1
  BatchSplit(int batch, int samples);

  [[nodiscard]] int count() const { return (batch_ + samples_ - 1) / samples_; }
  [[nodiscard]] int first(int chunk) const { return chunk * samples_; }
  [[nodiscard]] int size(int chunk) const { return std::min(samples_, batch_ - first(chunk)); }

 private:
  int batch_, samples_;
};

/// ... with the kernel of each: a WeightReader or a WgradKernel.
template <typename Kernel>
class ChunkKernels : public BatchSplit {
 public:
  using Make = std::function<std::unique_ptr<Kernel>(const ConvShape& chunk, const Kernel* like)>;
  /// Cuts `batch` into chunks of `samples`; `make` gives the kernel of one.
  ChunkKernels(const ConvShape& batch, int samples, const Make& make);

  [[nodiscard]] const Kernel& kernel(int chunk) const { return size(chunk) == size(0) ? *full_ : *last_; }
  /// What does not depend on the samples: the packed weights, and how a chunk is shared.
  [[nodiscard]] const Kernel& any() const { return *full_; }
  [[nodiscard]] int tasks() const { return count() * any().parts(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const;

 private:
  std::unique_ptr<Kernel> full_, last_;
};
extern template class ChunkKernels<WeightReader>;
extern template class ChunkKernels<WgradKernel>;

}  // namespace paceline::engine::cpu
