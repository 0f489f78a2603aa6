#pragma once

/// The kind of the processor. With the shape of a convolution it determines the default algorithm.

#include <string>

namespace paceline::engine::cpu {

struct ProcessorKind {
  std::string vendor;  ///< from cpuid: "GenuineIntel", "AuthenticAMD"; empty if unknown
  int family = 0;      ///< extended family included
  int model = 0;       ///< extended model included
  /// The best instruction set for products that may be used here: "baseline", "avx2", "avx512",
  /// "avx512-bf16", "amx".
  std::string units;
  friend bool operator==(const ProcessorKind&, const ProcessorKind&) = default;
};

/// The processor as this process may use it: `units` obeys PACELINE_MAX_CPU_ISA.
///
/// Threads  any
[[nodiscard]] const ProcessorKind& processor_here();

/// One word: "AuthenticAMD-26-2-avx512-bf16".
[[nodiscard]] std::string name_of(const ProcessorKind& kind);

}  // namespace paceline::engine::cpu
