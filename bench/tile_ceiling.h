#pragma once

/// The ceiling of tile products: what one thread multiplies by AMX-BF16 when it touches no memory at all.

/// GFLOP/s over about `seconds`, the best of some turns; 0 where the processor (or the system) has no tiles.
/// The tiles hold numbers of the kind that layers are timed with: of zeros the products are faster, for they
/// take less power.
///
/// Threads  the calling one; its tile registers are free before and after
[[nodiscard]] double tile_ceiling(double seconds);
