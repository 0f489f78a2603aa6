#pragma once

/// Runs kernels as loops on the processor, for the host runtime and for tests.

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

/// The order in which the loops visit blocks, and a block's threads in each phase. A kernel must give the
/// same bits in both; otherwise its threads depend on one another within a phase.
enum class HostOrder { ascending, descending };

/// Runs kernel number `kernel` of table.h on `arguments`: block after block, all threads of a block through a
/// phase before the next. A block's shared memory begins as NaN.
///
/// Requires   `arguments` is the kernel's struct; `grid` is the result of its grid(), or any number of blocks
///            if the kernel allows that
/// Threads    any number, each on its own call
void run_on_host(int kernel, const void* arguments, const Grid& grid, HostOrder order = HostOrder::ascending);

}  // namespace paceline::engine::cuda
