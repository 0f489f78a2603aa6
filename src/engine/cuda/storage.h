#pragma once

/// How the elements of activations and packed weights are stored: as float, Bf16 or Half.

#include <cstdint>

#include "engine/cuda/kernels/kernel.h"
#include "engine/engine.h"

namespace paceline::engine::cuda {

[[nodiscard]] constexpr std::int64_t bytes_of(Precision storage) { return storage == Precision::f32 ? 4 : 2; }

/// "f32", "bf16", "f16".
[[nodiscard]] constexpr const char* name_of(Precision storage) {
  return storage == Precision::f32 ? "f32" : storage == Precision::bf16 ? "bf16" : "f16";
}

/// Calls work(T{}) with the type that elements are stored as.
template <typename Work>
void with_storage(Precision storage, const Work& work) {
  switch (storage) {
    case Precision::f32:
      return work(float{});
    case Precision::bf16:
      return work(Bf16{});
    case Precision::f16:
      return work(Half{});
  }
}

}  // namespace paceline::engine::cuda
