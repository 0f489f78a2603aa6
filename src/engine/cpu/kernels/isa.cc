#include "engine/cpu/kernels/isa.h"

#include <cpuid.h>

namespace paceline::engine::cpu {

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return "baseline";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "";
}

std::vector<Isa> isas_here() {
  __builtin_cpu_init();
  std::vector<Isa> isas = {Isa::baseline};
  if (__builtin_cpu_supports("avx2")) isas.push_back(Isa::avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    isas.push_back(Isa::avx512);
  return isas;
}

bool has_bf16_instructions() {
  // Not without AVX-512 as the system saves it: __builtin_cpu_supports asks XGETBV, the bits below do not.
  if (isas_here().back() != Isa::avx512) return false;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 5)) != 0) return true;  // AVX512-BF16
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (1u << 22)) != 0;           // AMX-BF16
}

}  // namespace paceline::engine::cpu
