// The kernels for plain x86-64 (SSE2).
#define PACELINE_VECTOR_BYTES 16
#define PACELINE_ISA baseline
#include "engine/cpu/kernels/body.inc"
