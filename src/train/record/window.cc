#include "train/record/window.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "measure/gpu_record_fields.h"

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

bool Window::is_first_of_process() const { return job_.local_rank(communicator_.rank()) == 0; }

void Window::begin(const data::Loader* loader) {
  if (is_first_of_process()) times_before_ = measure::processor_times();
  if (communicator_.rank() == 0) programs_before_ = measure::program_times(left_out());
  if (job_.gpu_watch != nullptr && is_first_of_process()) job_.gpu_watch->begin();
  traffic_before_ = communicator_.traffic();
  if (loader != nullptr) loader_before_ = loader->statistics();
  if (is_first_of_process()) {
    if (!pauses_) pauses_.emplace(job_.resolved.local_workers * job_.resolved.threads);
    pauses_->begin();
  }
  begin_ = base::Clock::now();
}

void Window::loader_ends(const data::Loader& loader) {
  const auto done = loader.statistics();
  loader_before_.batches -= done.batches;
  loader_before_.prepare_s -= done.prepare_s;
  loader_before_.processor_s -= done.processor_s;
  loader_before_.wait_s -= done.wait_s;
  loader_before_.waits -= done.waits;
  loader_before_.ready -= done.ready;
}

bool Window::is_long_enough(std::int64_t update, std::int64_t steps) const {
  constexpr std::int64_t kFewestSteps = 3;
  const auto& options = job_.options;
  if (options.window_steps == 0 || update < options.warmup_steps) return false;
  if (options.window_seconds > 0 && steps >= kFewestSteps && seconds() > options.window_seconds) return true;
  return options.least_window_seconds > 0 && options.window_steps > 0 && steps >= options.window_steps &&
         seconds() > options.least_window_seconds;
}

void Window::end(const data::Loader* loader, const engine::Engine& engine, WorkerResult& result) {
  result.rank.wall_s = seconds();
  find_pauses(result);
  find_others(result);
  if (job_.gpu_watch != nullptr) find_gpus(result);
  result.rank.rank = communicator_.rank();
  result.traffic = {.collectives = traffic_.collectives - traffic_before_.collectives,
                    .steps = traffic_.steps - traffic_before_.steps,
                    .bytes_sent = traffic_.bytes_sent - traffic_before_.bytes_sent,
                    .bytes_received = traffic_.bytes_received - traffic_before_.bytes_received};
  result.rank.bytes_sent = result.traffic.bytes_sent;
  result.rank.bytes_received = result.traffic.bytes_received;
  describe_loader(loader, result.rank);
  try {
    result.device_memory = engine.device_memory();
  } catch (
      const base::Error& error) {  // all that was measured is there: a device that fails now takes nothing
    result.notes.push_back(fmt::format("the device did not say what its memory holds: {}", error.what()));
  }
}

/// Finds out for how long a process stood still.
void Window::find_pauses(WorkerResult& result) {
  constexpr double kNotKnown = -1;
  double paused_s = pauses_ ? pauses_->seconds().value_or(kNotKnown) : kNotKnown;
  pauses_.reset();
  if (job_.backend.place.processes > 1) communicator_.all_reduce(std::span(&paused_s, 1), comm::Reduce::max);
  if (communicator_.rank() == 0 && paused_s >= 0) result.paused_s = paused_s;
}

/// Finds processor time at rank 0's host that was used by processes outside of this run.
void Window::find_others(WorkerResult& result) {
  const bool is_root = communicator_.rank() == 0;
  const auto times = is_first_of_process() ? measure::processor_times() : std::nullopt;
  double siblings_s = 0;
  if (job_.backend.place.processes > 1) {
    if (!is_root && job_.backend.place.is_beside_first && times && times_before_)
      siblings_s = times->own_s - times_before_->own_s;
    communicator_.all_reduce(std::span(&siblings_s, 1), comm::Reduce::sum);
  }
  if (!is_root) return;
  result.others_cores = measure::cores_of_others(times_before_, times, siblings_s);
  result.others =
      measure::busiest_programs(programs_before_, measure::program_times(left_out()), result.rank.wall_s);
}

/// Gathers the GPU reports of all processes at rank 0.
void Window::find_gpus(WorkerResult& result) {
  std::optional<measure::GpuReport> mine;
  if (is_first_of_process()) mine = job_.gpu_watch->end(communicator_.rank());
  if (job_.backend.place.processes == 1) {
    if (mine) result.gpus.push_back(std::move(*mine));
    return;
  }
  if (mine)
    for (auto& gpu : mine->gpus) gpu.host = job_.backend.place.host;
  for (auto& report : comm::gather_at_first(communicator_, mine))
    if (report) result.gpus.push_back(std::move(*report));
}

/// The name of this run's processes, which do not count as others. A second run on the same host is therefore
/// not seen.
std::string Window::left_out() const {
  return job_.backend.place.processes > 1 ? measure::own_program_name() : "";
}

void Window::describe_loader(const data::Loader* loader, measure::RankRecord& rank) const {
  if (loader == nullptr) return;
  const auto now = loader->statistics();
  rank.loader_prepare_s = now.prepare_s - loader_before_.prepare_s;
  const auto options = loader_options(job_.options, job_.resolved, communicator_.rank());
  rank.loader_threads = options.threads;
  rank.loader_processor_s = now.processor_s - loader_before_.processor_s;
  rank.loader_waits = now.waits - loader_before_.waits;
  rank.loader_queue = options.prefetch;
  if (const auto batches = now.batches - loader_before_.batches; batches > 0)
    rank.loader_ready = static_cast<double>(now.ready - loader_before_.ready) / static_cast<double>(batches);
}

}  // namespace paceline::train
