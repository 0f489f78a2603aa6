#pragma once

/// The kind of the processor. With the shape of a convolution it determines the default algorithm.

#include <span>
#include <string>
#include <string_view>

#include "engine/engine.h"

namespace paceline::engine::cpu {

// Measures the peak rates of this machine's cores, with which the rates of a training are compared.

struct Peak {
  double flops_per_s = 0;  ///< of matrix products in the caches; sum over all threads
  double bytes_per_s = 0;  ///< of copying arrays larger than the caches; bytes read plus bytes written
};

/// Measures with `threads` threads at once and returns the best of some repetitions.
///
/// Cost     about 0.2 s and 256 MB
/// Errors   Error(device) if oneDNN has no product in this precision, or a thread cannot be started
[[nodiscard]] Peak measure_peak(int threads, Precision precision);

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

// Which precision is faster on a kind of processor: a table, compiled into the program, of what was
// measured. All machines of one kind make the same choice (docs/decisions/auto-precision.md).

/// One measurement on a kind of processor with bf16 units.
struct PrecisionRow {
  std::string_view vendor, units;  ///< as in ProcessorKind
  int family, model;
  /// Time of a step in bf16 over that in fp32: resnet18-cifar, batch 128, 2 threads, default algorithms.
  double bf16_over_fp32;
  std::string_view record;  ///< its file in results/records
};

/// All measurements.
[[nodiscard]] std::span<const PrecisionRow> precision_table();

/// The precision for processors of `kind`, which have bf16 units: the faster one of this kind's row. A kind
/// without a row gets bf16 only if there are rows of the same units and bf16 is faster in all of them: fp32
/// chosen wrongly costs time, bf16 chosen wrongly costs time and digits.
[[nodiscard]] AutoPrecision prefers(const ProcessorKind& kind,
                                    std::span<const PrecisionRow> table = precision_table());

}  // namespace paceline::engine::cpu
