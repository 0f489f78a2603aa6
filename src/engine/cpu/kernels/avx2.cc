// The kernels for AVX2. The pragma, not a compiler flag, chooses the instruction set: what is included in
// front of it is compiled for the baseline, so that no inline function shared with other files is built for
// this one.
#include "engine/cpu/kernels/kernels.h"

#pragma GCC target("avx2,fma")
#define PACELINE_VECTOR_BYTES 32
#define PACELINE_ISA avx2
#include "engine/cpu/kernels/body.inc"
