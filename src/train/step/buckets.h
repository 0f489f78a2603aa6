#pragma once

/// Cuts the flat gradient into buckets, and reduces each over all workers during the backward pass.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "graph/layout.h"
#include "measure/record.h"

namespace paceline::train {

/// Bucket i is [ends[i-1], ends[i]) of the flat gradient, in elements; ends.back() is the layout's size.
struct Buckets {
  std::vector<std::int64_t> ends;
  [[nodiscard]] std::size_t count() const { return ends.size(); }
  [[nodiscard]] std::int64_t begin(std::size_t bucket) const { return bucket == 0 ? 0 : ends[bucket - 1]; }
  [[nodiscard]] std::int64_t bytes(std::size_t bucket) const { return 4 * (ends[bucket] - begin(bucket)); }
  /// Of the longest; 0 if there is none.
  [[nodiscard]] std::int64_t most_bytes() const;
};

/// Cuts after each parameter with which a bucket reaches `bucket_bytes`. Parameters are never split, so that
/// a bucket can be sent as soon as its last gradient is final. The rest is a bucket of its own, however
/// small: nothing hides the last bucket, and joining the rest to another would delay that one too.
[[nodiscard]] Buckets cut_buckets(const graph::Layout& layout, std::int64_t bucket_bytes);

/// Posts buckets in index order as more of the gradient becomes final, and waits for them.
///
/// Threads  one, the worker's own
class BucketReducer {
 public:
  /// Collective, while no reduction is in progress.
  BucketReducer(const Buckets& buckets, comm::Communicator& communicator);
  /// Starts a step on `gradients`, the whole flat array.
  void begin(base::Array gradients);
  /// Gradients in [0, ready) are final: posts every bucket that is now complete. `finish`, if given, is
  /// called on a bucket's range before it is posted (shards join their partial sums there).
  void ready(std::int64_t ready,
             const std::function<void(std::int64_t begin, std::int64_t end)>& finish = {});
  /// Waits for all buckets and appends their timings, one per bucket, to `timings`.
  void wait(std::vector<comm::Timing>& timings);
  /// Calls wait() of all buckets and returns them. For devices: the wait may be queued on the device, and
  /// timings are available later.
  [[nodiscard]] std::vector<std::unique_ptr<comm::Pending>> wait();

 private:
  const Buckets& buckets_;
  comm::Communicator& communicator_;
  base::Array gradients_;
  std::vector<std::unique_ptr<comm::Pending>> pending_;
};

// Fills the record's figures of each bucket (a part of the gradient that is reduced in one call).

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
