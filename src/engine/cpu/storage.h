#pragma once

/// How activations and their gradients are stored.

#include <cstdint>

namespace paceline::engine::cpu {

enum class Storage { f32, bf16 };
[[nodiscard]] constexpr std::int64_t bytes_of(Storage storage) { return storage == Storage::f32 ? 4 : 2; }

}  // namespace paceline::engine::cpu
