#pragma once

/// Which instruction sets the engine's own kernels exist for, and which of them this machine has.

#include <string_view>
#include <vector>

namespace paceline::engine::cpu {

/// x86-64 itself · AVX2 · AVX-512 F, BW, DQ, VL · the same with AVX512-BF16, which rounds to bf16
enum class Isa { baseline, avx2, avx512, avx512_bf16 };

[[nodiscard]] std::string_view name_of(Isa isa);

/// The instruction sets that this machine runs, the best one last; never empty. None above the one that the
/// environment names in PACELINE_MAX_CPU_ISA, as ONEDNN_MAX_CPU_ISA does for oneDNN; AMX is above all of
/// them.
///
/// Errors   usage: an unknown name there
[[nodiscard]] const std::vector<Isa>& isas_here();
[[nodiscard]] bool has(Isa isa);
/// What the environment names; empty: nothing.
[[nodiscard]] std::string_view isa_limit();

}  // namespace paceline::engine::cpu
