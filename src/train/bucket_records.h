#pragma once

/// What a window keeps of each bucket.

#include <cstddef>
#include <span>
#include <vector>

#include "measure/record.h"
#include "train/buckets.h"

namespace paceline::train {

/// Makes `records` one a bucket, without times. With `keeps_ready` there is room for when each was ready in
/// so many steps, and they are returned; else nothing.
[[nodiscard]] std::span<measure::BucketRecord> begin_records(std::vector<measure::BucketRecord>& records,
                                                             const Buckets& buckets, std::size_t steps,
                                                             bool keeps_ready);

/// Where there is room. To a tenth of a microsecond, as all that is kept of single steps: more digits only
/// make files longer.
void add_ready_time(measure::BucketRecord& record, double seconds);

}  // namespace paceline::train
