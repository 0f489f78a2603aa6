#include "train/step/buckets.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

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

Buckets cut_buckets(const graph::Layout& layout, std::int64_t bucket_bytes) {
  Buckets buckets;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i + 1 < layout.slots.size(); ++i) {
    const std::int64_t end = layout.slots[i + 1].offset;
    if (4 * (end - begin) < bucket_bytes) continue;
    buckets.ends.push_back(end);
    begin = end;
  }
  if (layout.elements > begin) buckets.ends.push_back(layout.elements);
  return buckets;
}

std::int64_t Buckets::most_bytes() const {
  std::int64_t most = 0;
  for (std::size_t bucket = 0; bucket < count(); ++bucket) most = std::max(most, bytes(bucket));
  return most;
}

BucketReducer::BucketReducer(const Buckets& buckets, comm::Communicator& communicator)
    : buckets_(buckets), communicator_(communicator) {
  communicator.reserve(static_cast<std::size_t>(buckets.most_bytes() / 4));
}

void BucketReducer::begin(base::Array gradients) {
  base::expects(pending_.empty(), "every bucket of the last step was waited for");
  gradients_ = gradients;
}

void BucketReducer::ready(std::int64_t ready,
                          const std::function<void(std::int64_t begin, std::int64_t end)>& finish) {
  while (pending_.size() < buckets_.count() && buckets_.ends[pending_.size()] <= ready) {
    const std::size_t bucket = pending_.size();
    const std::int64_t begin = buckets_.begin(bucket), end = buckets_.ends[bucket];
    if (finish) finish(begin, end);
    pending_.push_back(communicator_.all_reduce(
        gradients_.subarray(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))));
  }
}

void BucketReducer::wait(std::vector<comm::Timing>& timings) {
  base::expects(pending_.size() == buckets_.count(), "the backward pass declared every gradient ready");
  for (auto& pending : pending_) {
    pending->wait();
    timings.push_back(pending->timing());
  }
  pending_.clear();
}

std::vector<std::unique_ptr<comm::Pending>> BucketReducer::wait() {
  base::expects(pending_.size() == buckets_.count(), "the backward pass declared every gradient ready");
  for (auto& pending : pending_) pending->wait();
  return std::exchange(pending_, {});
}

}  // namespace paceline::train
