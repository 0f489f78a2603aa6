#include "train/step/bucket_records.h"

#include <algorithm>
#include <cmath>

namespace paceline::train {

std::span<measure::BucketRecord> begin_records(std::vector<measure::BucketRecord>& records,
                                               const Buckets& buckets, std::size_t steps, bool keeps_ready) {
  records.assign(buckets.count(), {});
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].bytes = buckets.bytes(i);
    if (keeps_ready)
      records[i].ready_s.emplace().reserve(std::min(steps, measure::BucketRecord::kMostReadyTimes));
  }
  return keeps_ready ? std::span(records) : std::span<measure::BucketRecord>();
}

void add_ready_time(measure::BucketRecord& record, double seconds) {
  if (auto& times = *record.ready_s; times.size() < times.capacity())
    times.push_back(std::round(seconds * 1e7) / 1e7);
}

}  // namespace paceline::train
