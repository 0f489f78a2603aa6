#pragma once

/// PACELINE_VECTOR_CLONES before a function compiles it once for each vector width; the loader of the program
/// takes the widest that the processor has. Results are the same bits: ISO C++ mode neither reorders sums nor
/// contracts a product and a sum into one rounding.

// The choice is an ifunc, whose resolver runs before a sanitizer is initialised: instrumented builds use the
// plain version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define PACELINE_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define PACELINE_VECTOR_CLONES
#endif
