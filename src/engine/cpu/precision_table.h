#pragma once

/// Which precision is faster on a kind of processor: a table, compiled into the program, of what was
/// measured. All machines of one kind make the same choice (docs/decisions/auto-precision.md).

#include <span>
#include <string_view>

#include "engine/cpu/processor_kind.h"
#include "engine/engine.h"

namespace paceline::engine::cpu {

/// One measurement on a kind of processor with bf16 units.
struct PrecisionRow {
  std::string_view vendor, units;  ///< as in ProcessorKind
  int family, model;
  /// Time of a step in bf16 over that in fp32: resnet18-cifar, batch 128, 2 threads, default algorithms.
  double bf16_over_fp32;
  std::string_view record;  ///< its file in docs/results/records
};

/// All measurements.
[[nodiscard]] std::span<const PrecisionRow> precision_table();

/// The precision for processors of `kind`, which have bf16 units: the faster one of this kind's row. A kind
/// without a row gets bf16 only if there are rows of the same units and bf16 is faster in all of them: fp32
/// chosen wrongly costs time, bf16 chosen wrongly costs time and digits.
[[nodiscard]] AutoPrecision prefers(const ProcessorKind& kind,
                                    std::span<const PrecisionRow> table = precision_table());

}  // namespace paceline::engine::cpu
