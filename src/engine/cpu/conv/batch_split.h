#pragma once

/// One direction of a product over a whole batch: pieces of samples, each a kernel's, to be shared by
/// threads.
///
/// The first pieces have the same number of samples; the last may be shorter and then has a kernel of its
/// own, which works on the same packed weights: no batch size is slower than its neighbours.
///
/// Threads  run() from any number of threads at a time, each on its own task

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "engine/cpu/conv/kernel.h"

namespace paceline::engine::cpu {

/// Samples of a piece of direction `direction`: by the shape (whose samples are the batch), so that any
/// number of threads, on any machine, cuts the same way.
[[nodiscard]] int samples_of_piece(const ConvShape& batch, Direction direction);

class Pieces {
 public:
  using Make = std::function<std::unique_ptr<ConvKernel>(const ConvShape& piece, const ConvKernel* like)>;
  /// Cuts `batch` into pieces of `samples`; `make` gives the kernel of one.
  Pieces(const ConvShape& batch, int samples, const Make& make);

  [[nodiscard]] int count() const { return (batch_ + samples_ - 1) / samples_; }
  [[nodiscard]] int first(int piece) const { return piece * samples_; }
  [[nodiscard]] int size(int piece) const { return std::min(samples_, batch_ - first(piece)); }
  [[nodiscard]] const ConvKernel& kernel(int piece) const {
    return size(piece) == samples_ ? *full_ : *last_;
  }
  /// What does not depend on the samples: the packed weights, and how a piece is shared.
  [[nodiscard]] const ConvKernel& any() const { return *full_; }
  [[nodiscard]] int tasks() const { return count() * any().parts(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const;

 private:
  int batch_, samples_;
  std::unique_ptr<ConvKernel> full_, last_;
};

}  // namespace paceline::engine::cpu
