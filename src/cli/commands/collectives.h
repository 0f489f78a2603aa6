#pragma once

/// Times collectives alone, for `comm` and the comm cells of a study.

#include <optional>

#include "measure/record.h"
#include "train/given/backend.h"
#include "train/given/options.h"

namespace paceline::cli {

/// Times the all-reduce alone, in place as a training uses it, for about `seconds`: sizes from 4 KiB to 16
/// MiB (64 MiB if buckets are larger), as far as memory allows. Uses a thread for each of this process's
/// workers, bound to a core if workers are. With several processes all call it; the first gets the whole
/// record.
///
/// Errors   Error(comm) when a peer is lost
[[nodiscard]] measure::Record measure_all_reduce(const train::Options& options, const train::Backend& backend,
                                                 double seconds);

/// busbw of the largest size; nothing if there is none.
[[nodiscard]] std::optional<double> largest_busbw_gb_per_s(const measure::Record& record);

}  // namespace paceline::cli
