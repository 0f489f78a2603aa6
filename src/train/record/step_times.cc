#include "train/record/step_times.h"

#include <algorithm>

#include "base/error.h"
#include "measure/step_sample.h"

namespace paceline::train {

void StepTimes::begin(std::int64_t steps, measure::RankRecord& rank) {
  *this = {};
  const auto room = static_cast<std::size_t>(
      std::clamp<std::int64_t>(steps, 0, static_cast<std::int64_t>(measure::kMostTimedSteps)));
  rank.step_s.clear();
  rank.step_s.reserve(room);
  rank.own_s.emplace().reserve(room);
  rank.steps_s.reset();
}

void StepTimes::add(measure::RankRecord& rank, double seconds, double own) {
  seconds_ += seconds;
  const auto step = steps_++;
  if (!measure::is_timed(step, halvings_)) return;
  if (rank.step_s.size() == measure::kMostTimedSteps) {
    for (auto* times : {&rank.step_s, &*rank.own_s}) {
      measure::halve(*times, halvings_);
      times->reserve(measure::kMostTimedSteps);
    }
    ++halvings_;
    if (!measure::is_timed(step, halvings_)) return;
  }
  rank.step_s.push_back(seconds);
  rank.own_s->push_back(own);
}

void StepTimes::add(std::vector<measure::BucketRecord>& buckets,
                    std::span<const measure::CommunicationTime> times) {
  if (buckets.empty()) return;
  base::expects(times.size() % buckets.size() == 0, "every step has one collective a bucket");
  for (; halvings_of_buckets_ < halvings_; ++halvings_of_buckets_)
    for (auto& bucket : buckets) {
      measure::halve(bucket.transfer_s, halvings_of_buckets_);
      measure::halve(bucket.duration_s, halvings_of_buckets_);
      if (bucket.ready_s) measure::halve(*bucket.ready_s, halvings_of_buckets_);
    }
  for (; !times.empty(); times = times.subspan(buckets.size()), ++steps_of_buckets_) {
    if (!measure::is_timed(steps_of_buckets_, halvings_)) continue;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      buckets[i].transfer_s.push_back(times[i].transfer);
      buckets[i].duration_s.push_back(times[i].total);
    }
  }
}

void StepTimes::end(WorkerResult& result) const {
  result.window_steps = steps_;
  result.timed_of = std::int64_t{1} << halvings_;
  if (halvings_ > 0) result.rank.steps_s = seconds_;
}

}  // namespace paceline::train
