#include "engine/cpu/kernels/isa.h"

namespace paceline::engine::cpu {

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return "baseline";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512-bf16";
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
  if (isas.back() == Isa::avx512 && __builtin_cpu_supports("avx512bf16")) isas.push_back(Isa::avx512_bf16);
  return isas;
}

}  // namespace paceline::engine::cpu
