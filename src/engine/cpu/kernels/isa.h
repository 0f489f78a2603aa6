#pragma once

/// The instruction sets for which this project's kernels are compiled, and those that this machine has.

#include <string_view>
#include <vector>

namespace paceline::engine::cpu {

/// x86-64 itself · AVX2 with FMA · AVX-512 F, BW, DQ, VL · the same with AVX512-BF16, which rounds to bf16
enum class Isa { baseline, avx2, avx512, avx512_bf16 };

[[nodiscard]] std::string_view name_of(Isa isa);

/// The instruction sets that this machine can run, the best one last; never empty. The environment variable
/// PACELINE_MAX_CPU_ISA limits them, like ONEDNN_MAX_CPU_ISA for oneDNN; any limit also switches AMX off.
///
/// Errors   Error(usage) for an unknown name in the variable
[[nodiscard]] const std::vector<Isa>& isas_here();
[[nodiscard]] bool has(Isa isa);
/// The value of PACELINE_MAX_CPU_ISA; empty if it is not set.
[[nodiscard]] std::string_view isa_limit();

}  // namespace paceline::engine::cpu
