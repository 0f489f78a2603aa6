#pragma once

/// The kernels as loops on the processor: for the host runtime, and for tests.

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

/// In which order the loops visit blocks, and a block's threads in each phase. A kernel gives the same bits
/// in both, or its threads disturb one another inside a phase.
enum class HostOrder { ascending, descending };

/// Runs kernel number `kernel` of table.h on `arguments`: block after block, all threads of a block through a
/// phase before the next. A block's shared memory begins as NaN.
///
/// Requires   `arguments` is the kernel's struct; `grid` what its grid() says, but for kernels with any
/// number
///            of blocks
/// Threads    any number, each on its own call
void run_on_host(int kernel, const void* arguments, const Grid& grid, HostOrder order = HostOrder::ascending);

}  // namespace paceline::engine::cuda
