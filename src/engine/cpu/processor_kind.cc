#include "engine/cpu/processor_kind.h"

#include <cpuid.h>
#include <fmt/core.h>

#include <cstring>

#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/kernels/isa.h"

namespace paceline::engine::cpu {
namespace {

ProcessorKind found() {
  ProcessorKind kind;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) != 0) {
    char vendor[13] = {};
    std::memcpy(vendor, &ebx, 4);
    std::memcpy(vendor + 4, &edx, 4);
    std::memcpy(vendor + 8, &ecx, 4);
    kind.vendor = vendor;
  }
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) {
    // Intel's manual, CPUID leaf 1: the extended parts count from family 15 on; Intel's model also in
    // family 6.
    const unsigned family = eax >> 8 & 0xf, model = eax >> 4 & 0xf;
    const unsigned more_family = eax >> 20 & 0xff, more_model = eax >> 16 & 0xf;
    kind.family = static_cast<int>(family == 0xf ? family + more_family : family);
    kind.model = static_cast<int>(family == 0xf || family == 6 ? more_model << 4 | model : model);
  }
  kind.units = tiles::refusal_of(tiles::Unit::amx) ? name_of(isas_here().back()) : "amx";
  return kind;
}

}  // namespace

const ProcessorKind& processor_here() {
  static const ProcessorKind kind = found();
  return kind;
}

std::string name_of(const ProcessorKind& kind) {
  return fmt::format("{}-{}-{}-{}", kind.vendor.empty() ? "unknown" : kind.vendor, kind.family, kind.model,
                     kind.units);
}

}  // namespace paceline::engine::cpu
