#pragma once

/// Tiles of 16 x 16 floats turned in registers, for AVX-512.
///
/// Threads  none of its own

namespace paceline::engine::cpu {

/// Column i of the rows at from[0] to from[15], 16 floats each, becomes the row at to[i]: whole lines of 64
/// bytes, written past the caches. Read rows that go on where the last call's ended: nobody else fetches them
/// ahead.
void transpose_tile(const float* const from[16], float* const to[16]);

/// The same through the caches, to be read next.
void transpose_near_tile(const float* const from[16], float* const to[16]);

/// After which another thread may read what was written past the caches.
void end_streams();

}  // namespace paceline::engine::cpu
