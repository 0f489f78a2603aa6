#pragma once

/// Cuts the batch of one direction of a convolution into chunks of samples and keeps a kernel for each chunk.
/// Threads share the chunks.
///
/// All chunks but the last have the same number of samples. A shorter last chunk has a kernel of its own,
/// which uses the same packed weights: no batch size is slower than its neighbours.
///
/// Threads  const members: any number of threads

#include <algorithm>
#include <functional>
#include <memory>

#include "engine/cpu/conv/kernel.h"

namespace paceline::engine::cpu {

/// The usual number of samples in a chunk. It depends on the shape alone (`batch.samples` is the batch), so
/// that the chunks are the same for any number of threads and on any machine.
[[nodiscard]] int samples_of_chunk(const ConvShape& batch, Direction direction);

/// A batch, cut into chunks.
class BatchSplit {
 public:
  /// `samples`: in each chunk but the last, which may have fewer.
  ///
  /// Requires  both are at least 1
  BatchSplit(int batch, int samples);

  [[nodiscard]] int count() const { return (batch_ + samples_ - 1) / samples_; }
  [[nodiscard]] int first(int chunk) const { return chunk * samples_; }
  [[nodiscard]] int size(int chunk) const { return std::min(samples_, batch_ - first(chunk)); }

 private:
  int batch_, samples_;
};

/// A BatchSplit with the kernel of each chunk, a WeightReader or a WgradKernel.
template <typename Kernel>
class ChunkKernels : public BatchSplit {
 public:
  /// Makes the kernel of one chunk. `like`: the kernel of the full chunks when the shorter last one is made,
  /// else null.
  using Make = std::function<std::unique_ptr<Kernel>(const ConvShape& chunk, const Kernel* like)>;
  /// Cuts `batch` into chunks of `samples` and makes their kernels.
  ChunkKernels(const ConvShape& batch, int samples, const Make& make);

  [[nodiscard]] const Kernel& kernel(int chunk) const { return size(chunk) == size(0) ? *full_ : *last_; }
  /// A kernel to ask about what does not depend on the number of samples: the packed weights and parts().
  [[nodiscard]] const Kernel& any() const { return *full_; }
  /// Number of tasks: every part of every chunk is one.
  [[nodiscard]] int tasks() const { return count() * any().parts(); }
  /// What the most demanding kernel needs.
  [[nodiscard]] std::int64_t scratchpad_bytes() const;

 private:
  std::unique_ptr<Kernel> full_, last_;
};
extern template class ChunkKernels<WeightReader>;
extern template class ChunkKernels<WgradKernel>;

}  // namespace paceline::engine::cpu
