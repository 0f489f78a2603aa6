#pragma once

/// HostCopies keeps copies of the weights, of the optimizer's state and of the loss scale in pinned memory,
/// where the engine's caller reads and writes them.

#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/cuda/kernels/loss_scale.h"
#include "engine/cuda/optimizer.h"
#include "engine/cuda/runtime/runtime.h"

namespace paceline::engine::cuda {

class HostCopies {
 public:
  /// Copies of `arrays.weights` and `arrays.state`, `elements` each, filled with 0, and of
  /// `arrays.loss_scale`, as it begins.
  HostCopies(Runtime& runtime, Stream compute, const FlatArrays& arrays, std::int64_t elements)
      : runtime_(runtime), compute_(compute), on_device_{arrays.weights} {
    on_device_.insert(on_device_.end(), arrays.state.begin(), arrays.state.end());
    const auto count = static_cast<std::size_t>(elements);
    for (std::size_t i = 0; i < on_device_.size(); ++i) {
      auto* copy = reinterpret_cast<float*>(runtime.allocate_pinned(count * sizeof(float)));
      std::fill_n(copy, elements, 0.0f);
      copies_.emplace_back(copy, count);
    }
    if (arrays.loss_scale == nullptr) return;
    scale_on_device_ = &arrays.loss_scale->state;
    scale_ = new (runtime.allocate_pinned(sizeof(LossScale))) LossScale;
  }

  [[nodiscard]] std::span<float> weights() const { return copies_.front(); }
  [[nodiscard]] std::span<float> state(int slot) const {
    base::expects(slot >= 0 && slot + 1 < static_cast<int>(copies_.size()), "the rule keeps this state slot");
    return copies_[static_cast<std::size_t>(slot) + 1];
  }

  [[nodiscard]] std::optional<LossScale> loss_scale() const {
    return scale_ == nullptr ? std::nullopt : std::optional(*scale_);
  }
  void set_loss_scale(const LossScale& scale) {
    if (scale_ != nullptr) *scale_ = scale;
  }

  // Whether they are what the device has. The caller says it: copies are done when the stream is.
  [[nodiscard]] bool are_current() const { return are_current_; }
  void become_current(bool are_current) { are_current_ = are_current; }

  // Enqueue the copies on the compute stream.
  void read_device() const {
    for (std::size_t i = 0; i < copies_.size(); ++i)
      runtime_.copy_to_host(compute_, copies_[i].data(), on_device_[i], copies_[i].size_bytes());
    if (scale_ != nullptr) runtime_.copy_to_host(compute_, scale_, scale_on_device_, sizeof *scale_);
  }
  void write_device() const {
    for (std::size_t i = 0; i < copies_.size(); ++i)
      runtime_.copy_to_device(compute_, on_device_[i], copies_[i].data(), copies_[i].size_bytes());
    if (scale_ != nullptr) runtime_.copy_to_device(compute_, scale_on_device_, scale_, sizeof *scale_);
  }

 private:
  Runtime& runtime_;
  const Stream compute_;
  std::vector<float*> on_device_;         ///< the weights, then the state by slot
  std::vector<std::span<float>> copies_;  ///< in the same order
  LossScale* scale_on_device_ = nullptr;
  LossScale* scale_ = nullptr;
  bool are_current_ = true;
};

}  // namespace paceline::engine::cuda
