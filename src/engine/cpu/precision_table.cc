#include "engine/cpu/precision_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace paceline::engine::cpu {
namespace {

// Zen 5 (AuthenticAMD, family 26, model 2) has a table of algorithms and no row here: no record holds both
// precisions of it.
constexpr std::array kMeasured = {
    PrecisionRow{.vendor = "GenuineIntel",
                 .units = "amx",
                 .family = 6,
                 .model = 167,
                 .bf16_over_fp32 = 0.27,
                 .record = "bf16-over-fp32-amx.json"},
    PrecisionRow{.vendor = "GenuineIntel",
                 .units = "avx512-bf16",  // the same held to it by the environment
                 .family = 6,
                 .model = 167,
                 .bf16_over_fp32 = 1.03,
                 .record = "bf16-over-fp32-without-tiles-amx.json"},
    PrecisionRow{.vendor = "AuthenticAMD",
                 .units = "avx512-bf16",
                 .family = 25,
                 .model = 17,  // Zen 4
                 .bf16_over_fp32 = 0.87,
                 .record = "step-vs-pytorch-zen4-batch128.json"},
};

bool is_bf16_faster(const PrecisionRow& row) { return row.bf16_over_fp32 < 1; }

}  // namespace

std::span<const PrecisionRow> precision_table() { return kMeasured; }

AutoPrecision prefers(const ProcessorKind& kind, std::span<const PrecisionRow> table) {
  bool is_known = false, are_all_faster = true;
  for (const PrecisionRow& row : table) {
    if (row.units != kind.units) continue;
    if (row.vendor == kind.vendor && row.family == kind.family && row.model == kind.model)
      return {is_bf16_faster(row) ? Precision::bf16 : Precision::f32,
              fmt::format("a step in bf16 takes {:.2f} of fp32's time on this kind of processor ({})",
                          row.bf16_over_fp32, row.record)};
    is_known = true;
    are_all_faster = are_all_faster && is_bf16_faster(row);
  }
  if (is_known && are_all_faster)
    return {Precision::bf16,
            fmt::format("this kind of processor ({}) was not measured; all that were, with the "
                        "same units, are faster in bf16",
                        name_of(kind))};
  return {Precision::f32,
          fmt::format("the units for bf16 are there, but no measurement of this kind of processor "
                      "({}) says that bf16 is faster; --precision bf16 tries it",
                      name_of(kind))};
}

}  // namespace paceline::engine::cpu
