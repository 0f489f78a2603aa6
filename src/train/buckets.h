#pragma once

/// The flat gradient cut into buckets, each reduced over all workers while the backward pass goes on.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "graph/layout.h"

namespace paceline::train {

/// Bucket i is [ends[i-1], ends[i]) of the flat gradient, in elements; ends.back() is the layout's size.
struct Buckets {
  std::vector<std::int64_t> ends;
  [[nodiscard]] std::size_t count() const { return ends.size(); }
  [[nodiscard]] std::int64_t begin(std::size_t bucket) const { return bucket == 0 ? 0 : ends[bucket - 1]; }
  [[nodiscard]] std::int64_t bytes(std::size_t bucket) const { return 4 * (ends[bucket] - begin(bucket)); }
};

/// Cuts after each parameter at which a bucket has reached `bucket_bytes`. A parameter is never split, so
/// that a bucket leaves as soon as its last gradient is final. What is left at the end is a bucket however
/// small: the last one is what nothing hides, and joined to another it would keep that one waiting too.
[[nodiscard]] Buckets cut_buckets(const graph::Layout& layout, std::int64_t bucket_bytes);

/// Sends buckets in index order as the gradient's final prefix grows, and waits for them.
///
/// Threads  one, the worker's own
class BucketReducer {
 public:
  BucketReducer(const Buckets& buckets, comm::Communicator& communicator)
      : buckets_(buckets), communicator_(communicator) {}
  /// Starts a step on `gradients`, the whole flat array.
  void begin(base::Array gradients);
  /// Gradients in [0, ready) are final: posts every bucket that is now whole. `finish`, if given, is called
  /// on a bucket's range right before it leaves (shards join their partial sums there).
  void ready(std::int64_t ready,
             const std::function<void(std::int64_t begin, std::int64_t end)>& finish = {});
  /// Waits for all buckets; their timings, one a bucket, are appended to `timings`.
  void wait(std::vector<comm::Timing>& timings);
  /// Waits for all buckets as comm::Pending does, and gives them away: those of a device, whose queue may
  /// wait in the host's place, have their timings later.
  [[nodiscard]] std::vector<std::unique_ptr<comm::Pending>> wait();

 private:
  const Buckets& buckets_;
  comm::Communicator& communicator_;
  base::Array gradients_;
  std::vector<std::unique_ptr<comm::Pending>> pending_;
};

}  // namespace paceline::train
