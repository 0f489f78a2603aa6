#pragma once

/// Transposes tiles of 16 x 16 floats in registers.
///
/// Requires  AVX-512
/// Threads   any

namespace paceline::engine::cpu {

/// Column i of the rows from[0] to from[15], 16 floats each, becomes row to[i]. Writes bypass the caches and
/// need `to` aligned to 64 bytes. Let each call read on where the last one ended: nothing else prefetches
/// these rows.
void transpose_tile(const float* const from[16], float* const to[16]);

/// The same through the caches, for data that is read next. `to` needs no alignment.
void transpose_near_tile(const float* const from[16], float* const to[16]);

/// Call it after the last transpose_tile() and before another thread reads the result.
void end_streams();

}  // namespace paceline::engine::cpu
