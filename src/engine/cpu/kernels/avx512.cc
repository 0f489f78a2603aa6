// The kernels for AVX-512; see avx2.cc for the pragma.
#include "engine/cpu/kernels/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#define PACELINE_HAS_AVX512
#define PACELINE_ISA avx512
#include "engine/cpu/kernels/body.inc"
