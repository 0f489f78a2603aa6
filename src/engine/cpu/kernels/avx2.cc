// The kernels for AVX2. A pragma instead of a compiler flag chooses the instruction set. Everything included
// before it is compiled for the baseline, so that no inline function shared with other files is compiled for
// AVX2.
#include "engine/cpu/kernels/kernels.h"

#pragma GCC target("avx2,fma")
#define PACELINE_VECTOR_BYTES 32
#define PACELINE_ISA avx2
#include "engine/cpu/kernels/body.inc"
