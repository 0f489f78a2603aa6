// The kernels for AVX-512 with AVX512-BF16's rounding; see avx2.cc for the pragma.
#include "engine/cpu/kernels/kernels.h"

#pragma GCC target("avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#if defined(__clang__)  // clang does not know GCC's target pragma, and without it refuses the operands of the
                        // rounding
#pragma clang attribute push( \
    __attribute__((target("avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#endif
#define PACELINE_HAS_AVX512
#define PACELINE_ISA avx512_bf16
#define PACELINE_ROUNDS_TO_BF16
#include "engine/cpu/kernels/body.inc"
#if defined(__clang__)
#pragma clang attribute pop
#endif
