// What one thread of this machine can compute when it touches no memory at all: fused multiply-adds in
// registers, for some seconds. The yardstick of core_efficiency.py: where two of these side by side are
// slower than one alone, no program can scale better. One JSON line goes out.

#include <fmt/core.h>

#include <string>

#include "base/clock.h"

namespace {

// Twelve independent sums hide the latency of the multiply-add on every x86-64 with FMA. The empty asm keeps
// each in its register: an array of them was stored in every turn, at a third of the rate.
#define PACELINE_FMA_LOOP(bytes)                                                                             \
  typedef float Vector __attribute__((vector_size(bytes)));                                                  \
  Vector s0{}, s1{}, s2{}, s3{}, s4{}, s5{}, s6{}, s7{}, s8{}, s9{}, s10{}, s11{};                           \
  const Vector a = Vector{} + 0.999f, b = Vector{} + 0.001f;                                                 \
  for (long i = 0; i < count; ++i) {                                                                         \
    s0 = s0 * a + b, s1 = s1 * a + b, s2 = s2 * a + b, s3 = s3 * a + b;                                      \
    s4 = s4 * a + b, s5 = s5 * a + b, s6 = s6 * a + b, s7 = s7 * a + b;                                      \
    s8 = s8 * a + b, s9 = s9 * a + b, s10 = s10 * a + b, s11 = s11 * a + b;                                  \
    asm volatile(""                                                                                          \
                 : "+v"(s0), "+v"(s1), "+v"(s2), "+v"(s3), "+v"(s4), "+v"(s5), "+v"(s6), "+v"(s7), "+v"(s8), \
                   "+v"(s9), "+v"(s10), "+v"(s11));                                                          \
  }                                                                                                          \
  const Vector total = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11;                          \
  return total[0];

__attribute__((target("avx512f,fma,prefer-vector-width=512"), optimize("O3"))) float in_avx512(long count) {
  PACELINE_FMA_LOOP(64)
}
__attribute__((target("avx2,fma"), optimize("O3"))) float in_avx2(long count) { PACELINE_FMA_LOOP(32) }

}  // namespace

int main(int argc, char** argv) {
  const double wanted = argc > 1 ? std::stod(argv[1]) : 2;
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") != 0;
  if (!avx512 && !__builtin_cpu_supports("fma")) {
    fmt::print(stderr, "bench_registers: this processor must have AVX2 and FMA, but has not\n");
    return 4;
  }
  constexpr long kCount = 1'000'000;
  double operations = 0;
  float kept = 0;
  const auto begin = paceline::base::Clock::now();
  do {
    kept += avx512 ? in_avx512(kCount) : in_avx2(kCount);
    operations += 2.0 * 12 * (avx512 ? 16 : 8) * kCount;
  } while (paceline::base::seconds_since(begin) < wanted);
  const double seconds = paceline::base::seconds_since(begin);
  fmt::print(
      "{{\"what\": \"{} multiply-adds in registers\", \"gflop_per_s\": {:.1f}, \"seconds\": {:.2f}, \"sum\": "
      "{}}}\n",
      avx512 ? "AVX-512" : "AVX2", operations / seconds / 1e9, seconds, kept);
  return 0;
}
