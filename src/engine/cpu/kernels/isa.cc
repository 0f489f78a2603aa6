#include "engine/cpu/kernels/isa.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

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

namespace {

constexpr const char* kMost = "PACELINE_MAX_CPU_ISA";

std::vector<Isa> found() {
  __builtin_cpu_init();
  std::vector<Isa> isas = {Isa::baseline};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas.push_back(Isa::avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    isas.push_back(Isa::avx512);
  if (isas.back() == Isa::avx512 && __builtin_cpu_supports("avx512bf16")) isas.push_back(Isa::avx512_bf16);
  const std::string_view most = isa_limit();
  if (most.empty()) return isas;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    if (name_of(isa) != most) continue;
    std::erase_if(isas, [&](Isa found) { return found > isa; });
    return isas;
  }
  base::fail(base::ErrorKind::usage, "{} is \"{}\"; known are baseline, avx2, avx512, avx512-bf16", kMost,
             most);
}

}  // namespace

std::string_view isa_limit() {
  const char* const most = std::getenv(kMost);
  return most == nullptr ? "" : most;
}

const std::vector<Isa>& isas_here() {
  static const std::vector<Isa> isas = found();
  return isas;
}

bool has(Isa isa) {
  const auto& isas = isas_here();
  return std::find(isas.begin(), isas.end(), isa) != isas.end();
}

}  // namespace paceline::engine::cpu
