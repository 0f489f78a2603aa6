#pragma once

/// What kind of processor this is: beside a shape, all that the default choice of algorithms depends on.

#include <string>

namespace paceline::engine::cpu {

struct ProcessorKind {
  std::string vendor;  ///< as cpuid says it: "GenuineIntel", "AuthenticAMD"; "" where it says nothing
  int family = 0;      ///< with the extended one added
  int model = 0;       ///< likewise
  /// The best unit that may be used here: "baseline", "avx2", "avx512", "avx512-bf16", "amx".
  std::string units;
  friend bool operator==(const ProcessorKind&, const ProcessorKind&) = default;
};

/// Of this process: limits of the environment (PACELINE_MAX_CPU_ISA) are in `units`.
///
/// Threads  any
[[nodiscard]] const ProcessorKind& processor_here();

/// One word: "AuthenticAMD-26-2-avx512-bf16".
[[nodiscard]] std::string name_of(const ProcessorKind& kind);

}  // namespace paceline::engine::cpu
