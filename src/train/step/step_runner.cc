#include "train/step/step_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "measure/statistics.h"
#include "train/step/data_parallel.h"
#include "train/step/queued_steps.h"

namespace paceline::train {
namespace {

constexpr std::size_t kShort = 65536 / sizeof(float);

/// Seconds of reducing `arrays` one after another: the median of several tries, each timed on the rank that
/// arrived last and so did not wait.
double seconds_of_reductions(comm::Communicator& communicator, std::span<const base::Array> arrays,
                             int tries) {
  std::vector<double> durations;
  for (int i = 0; i < tries; ++i) {
    communicator.barrier();
    std::vector<std::unique_ptr<comm::Pending>> pending;
    const auto begin = base::Clock::now();
    for (const auto& array : arrays) pending.push_back(communicator.all_reduce(array));
    for (const auto& one : pending) one->wait();
    double seconds = base::seconds(pending.back()->timing().done - begin);
    communicator.all_reduce(std::span(&seconds, 1), comm::Reduce::min);
    if (i > 0) durations.push_back(seconds);  // the first one touches memory and is not counted
  }
  return measure::estimate(durations).median;
}

/// The best bucket with measured latency and bandwidth: reductions of 64 KiB and of all of `gradients`, which
/// are set to zero. Every rank gets the same answer. Collective, over more than one rank.
BucketChoice choose_bucket(comm::Communicator& communicator, base::Array gradients) {
  communicator.reserve(gradients.size);
  gradients.memory->fill(gradients, 0);
  const auto part = gradients.subarray(0, std::min(kShort, gradients.size));
  const double all = seconds_of_reductions(communicator, std::span(&gradients, 1), 5);
  const double few = seconds_of_reductions(communicator, std::span(&part, 1), 21);
  const auto more = static_cast<double>(gradients.bytes() - part.bytes());
  if (more <= 0 || all <= few)  // a gradient this short has one bucket
    return best_bucket(static_cast<double>(gradients.bytes()), few, 1e18);
  const double bytes_per_s = more / (all - few);
  const double latency = std::max(few - static_cast<double>(part.bytes()) / bytes_per_s, 1e-7);
  return best_bucket(static_cast<double>(gradients.bytes()), latency, bytes_per_s);
}

/// The bucket size of a run in 1e6 bytes: the option's value, or with --bucket auto the measured choice, with
/// a note. `queue`: the engine's, or null.
double bucket_mb(const StepContext& in, engine::StepQueue* queue, std::vector<std::string>& notes) {
  const Options& options = in.job.options;
  if (!options.bucket_auto || in.communicator.size() == 1 || is_data_parallel(options))
    return options.bucket_mb;
  const auto choice =
      choose_bucket(in.communicator, queue != nullptr ? queue->gradients_and_votes() : in.engine.gradients());
  notes.push_back(choice.why);
  return choice.megabytes;
}

}  // namespace

BucketChoice best_bucket(double gradient_bytes, double latency_s, double bytes_per_s) {
  const double best = std::sqrt(gradient_bytes * latency_s * bytes_per_s);
  const double bytes = std::clamp(best, gradient_bytes / 100, gradient_bytes);
  // Two digits: more would suggest a precision that the estimate does not have. The printed size, read back,
  // is the same size.
  const double unit = std::pow(10, std::floor(std::log10(bytes)) - 1);
  const double megabytes = std::max(1.0, std::round(bytes / unit)) * unit / 1e6;
  return {.megabytes = megabytes,
          .why = fmt::format(
              "--bucket auto: {:.3g} MB per bucket, from the measured latency of {:.1f} us and bandwidth of "
              "{:.2f} GB/s of a reduction here and a gradient of {:.1f} MB",
              megabytes, 1e6 * latency_s, bytes_per_s / 1e9, gradient_bytes / 1e6)};
}

double allreduce_peak(comm::Communicator& communicator, const StepRunner& steps) {
  if (steps.buckets() == nullptr) return 0;
  const Buckets& buckets = *steps.buckets();
  const auto gradients = steps.array();
  gradients.memory->fill(gradients, 0);
  std::vector<base::Array> parts;
  for (std::size_t bucket = 0; bucket < buckets.count(); ++bucket)
    parts.push_back(gradients.subarray(static_cast<std::size_t>(buckets.begin(bucket)),
                                       static_cast<std::size_t>(buckets.bytes(bucket) / 4)));
  constexpr int kTries = 6;
  const double ranks = communicator.size();
  const double algbw =
      static_cast<double>(gradients.bytes()) / seconds_of_reductions(communicator, parts, kTries);
  return algbw * 2 * (ranks - 1) / ranks / 1e9;
}

std::unique_ptr<StepRunner> make_step_runner(const StepContext& in, std::vector<std::string>& notes) {
  const Options& options = in.job.options;
  auto* const queue = queue_of(in.job, in.engine);
  in.communicator.at(0, "the trial of collectives");
  const double megabytes = bucket_mb(in, queue, notes);
  std::unique_ptr<StepRunner> steps;
  if (queue != nullptr)
    steps = std::make_unique<QueuedStepper>(in, *queue, megabytes);
  else if (is_data_parallel(options))
    steps = std::make_unique<DataParallelStepper>(in);
  else
    steps = std::make_unique<Stepper>(in, megabytes);
  in.communicator.at(0, "the warm-up");
  const bool evaluates = options.window_steps == 0 && in.job.evaluation_graph == nullptr;
  using Steps = engine::WarmUp::Steps;
  in.engine.warm_up({.steps = queue != nullptr ? Steps::queued : Steps::waited,
                     .views = evaluates ? options.test_views : 0});
  return steps;
}

}  // namespace paceline::train
