#pragma once

/// Fills the record's figures of each bucket (a part of the gradient that is reduced in one call).

#include <cstddef>
#include <span>
#include <vector>

#include "measure/record.h"
#include "train/step/buckets.h"

namespace paceline::train {

/// Makes one record per bucket in `records`, without times. With `keeps_ready` it reserves room for the times
/// at which each bucket was ready in `steps` steps and returns the records; otherwise it returns an empty
/// span.
[[nodiscard]] std::span<measure::BucketRecord> begin_records(std::vector<measure::BucketRecord>& records,
                                                             const Buckets& buckets, std::size_t steps,
                                                             bool keeps_ready);

/// Adds a time if there is room. Like all figures of single steps it is rounded to a tenth of a microsecond;
/// more digits would only make files longer.
void add_ready_time(measure::BucketRecord& record, double seconds);

}  // namespace paceline::train
