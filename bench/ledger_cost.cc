/// What keeping the ledger, and the rule on losses, cost as a share of a step: the calls that a step makes on
/// its ledger and its collective log, timed alone, beside the median of whole steps timed in the same
/// process. The ledger cannot be switched off, and a difference of two noisy runs would not show a millionth
/// part.
///
///     ledger_cost [model, default resnet8-cifar] [repeats, default 5]

#include <fmt/core.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/make_backend.h"
#include "comm/make.h"
#include "measure/statistics.h"
#include "train/record/window.h"
#include "train/run.h"
#include "train/step/exposed_comm.h"
#include "train/step/loss_guard.h"

namespace {

using namespace paceline;
using measure::Phase;

constexpr int kSteps = 1000;  ///< between two folds, as in an epoch

double median(const std::vector<double>& samples) { return measure::estimate(samples).median; }

/// What one rank writes down in a step with `buckets` collectives, as Worker::step and Stepper::run do.
void keep_books(measure::Ledger& ledger, train::CollectiveLog& log, int buckets) {
  for (const Phase phase : {Phase::data_wait, Phase::other, Phase::forward, Phase::backward})
    ledger.enter(phase);
  if (buckets > 0) {
    ledger.enter(Phase::exposed_transfer);
    log.begin_blocked();
    for (int i = 0; i < buckets; ++i)
      log.timings().push_back({.posted = base::Clock::now(), .done = base::Clock::now()});
    log.end_blocked();
  }
  ledger.enter(Phase::update);
  ledger.enter(Phase::other);
}

/// Seconds of bookkeeping a step on rank 0 of `ranks`, the fold at the end of the steps included.
double bookkeeping(int ranks, int buckets) {
  auto communicators = comm::make_local(ranks);
  double seconds = 0;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto& communicator = *communicators[static_cast<std::size_t>(rank)];
      measure::Ledger ledger;
      train::CollectiveLog log;
      measure::RankRecord record;
      std::vector<measure::BucketRecord> records(static_cast<std::size_t>(buckets));
      train::StepTimes times;
      times.begin(kSteps, record);
      ledger.start();
      communicator.barrier();
      const auto begin = base::Clock::now();
      for (int step = 0; step < kSteps; ++step) {
        keep_books(ledger, log, buckets);
        times.add(record, 1, 1);
      }
      times.add(records, log.fold(communicator, ledger, record));
      if (rank == 0) seconds = base::seconds_since(begin) / kSteps;
    });
  }
  threads.clear();
  return seconds;
}

/// Seconds a step of what a rank does about its loss: votes written, read, and the rule on them. Losses fall
/// and scatter, as a training's.
double loss_rule(int steps) {
  train::LossGuard guard(train::OnNan::stop, 10, 128, true);
  bool good = true;
  const auto begin = base::Clock::now();
  for (int step = 0; step < steps; ++step) {
    const double loss = 128 * (2.3 / (1 + 0.001 * step) + 0.01 * (step % 7));
    good = guard.see(train::votes_from(train::as_floats({.loss = loss}))) == train::Verdict::good && good;
  }
  const double seconds = base::seconds_since(begin) / steps;
  base::expects(good, "the losses of this benchmark are good ones");
  return seconds;
}

/// A window of steps as `paceline train --window-steps` times it.
measure::Record steps_of(const std::string& model, int workers, std::int64_t batch) {
  train::Options options;
  options.model = model;
  options.workers = workers;
  options.threads = 1;
  options.local_batch = batch;
  options.epochs = 1;
  options.window_steps = 20;
  options.warmup_steps = 3;
  options.evaluate_every = 0;
  return train::run(options, cluster::make_backend("cpu"), {}, {});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string model = argc > 1 ? argv[1] : "resnet8-cifar";
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 5;
  fmt::print("{}, one thread a worker; medians of {} repeats\n", model, repeats);
  std::vector<double> rule;
  for (int i = 0; i < repeats; ++i) rule.push_back(loss_rule(100 * kSteps));
  fmt::print("the rule on losses and its votes: {:.0f} ns a step\n", median(rule) * 1e9);
  fmt::print("{:>7} {:>6} {:>8} {:>12} {:>16} {:>8}\n", "workers", "batch", "buckets", "step [ms]",
             "bookkeeping [us]", "share");
  for (const int workers : {1, 2, 4}) {
    for (const std::int64_t batch : {8, 32, 128}) {
      std::vector<double> steps, books;
      std::size_t buckets = 0;
      for (int i = 0; i < repeats; ++i) {  // in turns: what else the machine does falls on both
        const auto record = steps_of(model, workers, batch);
        buckets = record.buckets.size();
        steps.push_back(median(record.ranks.front().step_s));
        books.push_back(bookkeeping(workers, static_cast<int>(buckets)));
      }
      const double step = median(steps), book = median(books);
      fmt::print("{:>7} {:>6} {:>8} {:>12.3f} {:>16.3f} {:>7.4f}%\n", workers, batch, buckets, step * 1e3,
                 book * 1e6, book / step * 100);
    }
  }
}
