#pragma once

/// Records as a run would leave them, made from a few chosen numbers: the input of the tests of analysis and
/// report. Everything that is derived (images, steps, ledgers) is derived here as a run would.

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "measure/record.h"

namespace paceline::golden {

/// The numbers that a test chooses; times in seconds a step.
struct Run {
  std::string kind = "scale";
  std::string scaling = "weak";
  int workers = 1;
  std::int64_t local_batch = 128;
  int repeat = 0;
  double forward = 0.4, backward = 0.8, update = 0.01;
  double exposed_transfer = 0, exposed_wait = 0;
  double communication = 0, transfer = 0;  ///< total, and moving bytes
  double data_wait = 0.005, copy = 0.002, other = 0.003;
  std::vector<double> jitter{1.00, 0.99, 1.01, 1.00,
                             1.02, 0.99, 1.00, 1.01};  ///< factors on each measured step
  std::int64_t train_samples = 50000;
  bool oversubscribed = false;

  [[nodiscard]] double step() const {
    return forward + backward + update + exposed_transfer + exposed_wait + data_wait + copy + other;
  }
};

constexpr std::int64_t kParameters = 11173962;  ///< ResNet-18 for CIFAR-10, as of report R2

inline measure::Record make_record(const Run& run) {
  using measure::Phase;
  measure::Record record;
  record.kind = run.kind;
  record.scaling = run.kind == "scale" ? run.scaling : "";
  record.id =
      fmt::format("{}-{}-w{}-b{}-r{}", run.kind, run.scaling, run.workers, run.local_batch, run.repeat);
  record.created = "2025-03-01T12:00:00Z";
  record.command = "paceline scale --workers 1,2,4";
  record.repeat = run.repeat;
  record.environment = {.host = "bench",
                        .cpu = "Example CPU",
                        .cores = 2,
                        .memory_bytes = 8'000'000'000,
                        .instructions = {"avx2", "avx512f"},
                        .os = "Debian GNU/Linux 12",
                        .compiler = "GCC 12.2.0",
                        .build = "Release",
                        .version = "0.1.0 (abc1234)",
                        .libraries = {"onednn 2.6.3"},
                        .load_before = 0.1};
  record.model = {.name = "resnet18-cifar", .parameters = kParameters, .training_flops = 3'340'000'000};
  record.data = {.spec = "cifar10:data",
                 .name = "cifar10",
                 .description = "CIFAR-10, binary version",
                 .synthetic = false,
                 .train_samples = run.train_samples,
                 .test_samples = 10000};
  record.workers = run.workers;
  record.threads_per_worker = 1;
  record.oversubscribed = run.oversubscribed;
  record.local_batch = run.local_batch;
  record.global_batch = run.local_batch * run.workers;
  record.batch_given_as = run.scaling == "strong" ? "global" : "local";
  record.precision = "fp32";
  record.device = "cpu";
  record.data.steps_per_epoch = run.train_samples / record.global_batch;
  record.data.dropped_per_epoch = run.train_samples % record.global_batch;
  record.settings = {{"model", "resnet18-cifar"},
                     {"data", "cifar10:data"},
                     {"workers", std::to_string(run.workers)},
                     {"local-batch", run.scaling == "strong" ? "0" : std::to_string(run.local_batch)},
                     {"global-batch", run.scaling == "strong" ? std::to_string(record.global_batch) : "0"},
                     {"loader-threads", "1"},
                     {"precision", "fp32"},
                     {"optimizer", "sgd"},
                     {"lr", "0.1"},
                     {"seed", "0"},
                     {"threads", "1"},
                     {"bn", "local"},
                     {"window-steps", "8"},
                     {"warmup-steps", "2"}};
  record.memory.plan_bytes = 700'000'000 + run.workers * (200'000'000 + run.local_batch * 9'000'000);
  record.memory.peak_bytes = static_cast<std::int64_t>(static_cast<double>(record.memory.plan_bytes) * 0.97);
  record.memory.available_bytes = 7'600'000'000;

  const auto steps = static_cast<double>(run.jitter.size());
  double sum = 0;
  for (const double factor : run.jitter) sum += factor;
  record.window = {.unit = "steps",
                   .warmup_steps = 2,
                   .steps = static_cast<std::int64_t>(run.jitter.size()),
                   .samples = static_cast<std::int64_t>(run.jitter.size()) * record.global_batch,
                   .wall_s = sum * run.step(),
                   .others_cores = 0.02};
  for (int rank = 0; rank < run.workers; ++rank) {
    measure::RankRecord one;
    one.rank = rank;
    one.cores = {rank % 2};  // two cores: more workers share them
    one.wall_s = sum * run.step();
    const auto book = [&](Phase phase, double seconds) {
      one.phases[static_cast<std::size_t>(phase)] = sum * seconds;
    };
    book(Phase::forward, run.forward);
    book(Phase::backward, run.backward);
    book(Phase::update, run.update);
    book(Phase::exposed_transfer, run.exposed_transfer);
    book(Phase::exposed_wait, run.exposed_wait);
    book(Phase::data_wait, run.data_wait);
    book(Phase::copy, run.copy);
    book(Phase::other, run.other);
    one.communication_s = steps * run.communication;
    one.transfer_s = steps * run.transfer;
    one.late_peer_s = steps * (run.communication - run.transfer);
    for (const double factor : run.jitter) one.step_s.push_back(factor * run.step());
    one.loader_prepare_s = static_cast<double>(record.window.samples) / run.workers / 4400.0;
    one.loader_threads = 1;
    one.loader_processor_s = one.loader_prepare_s / 1.1;
    one.loader_ready = 1.75;
    one.loader_waits = 0;
    one.loader_queue = 2;
    record.ranks.push_back(std::move(one));
  }

  record.communication.communicator = run.workers == 1 ? "none" : "local";
  record.communication.gradient_bytes = 4 * kParameters;
  if (run.workers > 1) {
    record.communication.algorithm = "direct reduce-scatter and all-gather in shared memory";
    record.communication.collectives = 12 * record.window.steps;
    record.communication.bytes_sent =
        static_cast<std::int64_t>(2.0 * (run.workers - 1) / run.workers * 4 * kParameters * steps);
    record.communication.memory_ceiling_gb_per_s = 9.0;
    for (int bucket = 0; bucket < 12; ++bucket)
      record.buckets.push_back(
          {.bytes = bucket < 11 ? 4'000'000 : 4 * kParameters - 44'000'000,
           .transfer_s = std::vector<double>(run.jitter.size(), run.transfer / 12),
           .duration_s = std::vector<double>(run.jitter.size(), run.communication / 12)});
  }
  return record;
}

/// The spans of its last three steps, each of them the mean of the ledger: data, forward, backward, transfer,
/// waiting, update, the rest; the first bucket's all-reduce behind backward.
inline void add_last_steps(measure::Record& record) {
  using measure::Phase;
  constexpr int kSteps = 3;
  auto& last = record.last_steps.emplace();
  last.steps = kSteps;
  for (const auto& rank : record.ranks) {
    auto& columns = last.ranks.emplace_back();
    columns.rank = rank.rank;
    double at = 0;
    for (int step = 0; step < kSteps; ++step)
      for (const auto phase : {Phase::data_wait, Phase::forward, Phase::backward, Phase::exposed_wait,
                               Phase::exposed_transfer, Phase::update, Phase::copy, Phase::other}) {
        const double length =
            1e6 * rank.phases[static_cast<std::size_t>(phase)] / static_cast<double>(record.window.steps);
        if (phase == Phase::exposed_wait && record.workers > 1) {
          columns.bucket.push_back(0);
          columns.posted_us.push_back(at);
          columns.under_way_us.push_back(
              length + 1e6 * rank.phases[static_cast<std::size_t>(Phase::exposed_transfer)] /
                           static_cast<double>(record.window.steps));
        }
        if (length <= 0) continue;
        columns.phase.push_back(static_cast<int>(phase));
        columns.begin_us.push_back(at);
        columns.length_us.push_back(length);
        at += length;
      }
  }
}

/// A cell that was not run, and why.
inline measure::Record make_skipped(const Run& run, std::string reason) {
  measure::Record record = make_record(run);
  record.status = "skipped";
  record.reason = std::move(reason);
  record.ranks.clear();
  record.buckets.clear();
  record.window = {};
  record.memory.peak_bytes.reset();
  return record;
}

/// A training with an accuracy after each epoch.
struct Training {
  std::string variant = "baseline";
  int workers = 1;
  std::int64_t global_batch = 128;
  int seed = 0;
  double lr = 0.1, factor = 1;
  std::string rule = "none";
  std::vector<double> accuracies{0.40, 0.60, 0.70};
};

inline measure::Record make_training(const Training& training) {
  Run run{.kind = training.variant.empty() ? "train" : "converge",
          .scaling = "strong",
          .workers = training.workers,
          .local_batch = training.global_batch / training.workers,
          .repeat = training.seed};
  measure::Record record = make_record(run);
  record.variant = training.variant;
  record.id = fmt::format("{}-{}-r{}", record.kind, training.variant, training.seed);
  record.window.unit = "epoch";
  record.settings["seed"] = std::to_string(training.seed);
  record.settings["scale-lr"] = training.rule;
  record.settings["epochs"] = std::to_string(training.accuracies.size());
  record.settings.erase("window-steps");
  record.learning_rate = {.base = training.lr,
                          .factor = training.factor,
                          .peak = training.lr * training.factor,
                          .rule = training.rule,
                          .reference_batch = 128};
  record.settings["lr"] = fmt::format("{:g}", training.lr);
  for (std::size_t i = 0; i < training.accuracies.size(); ++i) {
    const double p = training.accuracies[i];
    record.epochs.push_back({.epoch = static_cast<std::int64_t>(i + 1),
                             .updates = static_cast<std::int64_t>(i + 1) * record.data.steps_per_epoch,
                             .seconds = run.step() * static_cast<double>(record.data.steps_per_epoch),
                             .lr = record.learning_rate.peak,
                             .train_loss = 2.3 * (1 - p) + 0.1,
                             .train_accuracy = p - 0.02,
                             .test_loss = 2.3 * (1 - p),
                             .test_accuracy = p});
  }
  return record;
}

}  // namespace paceline::golden
