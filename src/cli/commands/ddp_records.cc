#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "table/import/import.h"

namespace paceline::cli {
namespace {

using measure::Phase;
using table::DdpRank;
using table::DdpRun;

double sum_of(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

measure::RankRecord rank_record(const DdpRank& rank, bool has_hosts) {
  measure::RankRecord record{.rank = rank.rank};
  if (has_hosts) record.host = fmt::format("host {}", rank.host);
  record.step_s = rank.step_s;
  record.wall_s = sum_of(rank.step_s);
  const double waited = sum_of(rank.exposed_s) + sum_of(rank.buffers_s);
  record.late_peer_s = std::min(sum_of(rank.late_s), waited);
  record.transfer_s = waited - record.late_peer_s;
  record.communication_s = waited;
  auto& own = record.own_s.emplace(rank.step_s);
  for (std::size_t k = 0; k < own.size(); ++k)
    own[k] = std::max(0.0, own[k] - rank.exposed_s[k] - rank.buffers_s[k]);
  const auto set = [&](Phase phase, double seconds) {
    record.phases[static_cast<std::size_t>(phase)] = seconds;
    return seconds;
  };
  const double known =
      set(Phase::data_wait, sum_of(rank.data_s)) + set(Phase::forward, sum_of(rank.forward_s)) +
      set(Phase::backward, sum_of(rank.backward_s)) + set(Phase::exposed_wait, record.late_peer_s) +
      set(Phase::exposed_transfer, record.transfer_s);
  set(Phase::other, std::max(0.0, record.wall_s - known));  // loss, update, copies: the trainer's own
  return record;
}

/// In records a bucket's reduction begins once the one before it has ended, and lasts as long as on the rank
/// on which it is shortest: the last one to post it, which waits for nobody.
measure::BucketRecord bucket_record(const DdpRun& run, std::size_t bucket) {
  measure::BucketRecord record{.bytes = std::llround(run.bucket_bytes[bucket])};
  auto& ready = record.ready_s.emplace();
  for (std::size_t k = 0; k < run.steps.size(); ++k) {
    const auto& first = run.ranks.front();
    const auto before = first.backward_s[k] - first.last_backward_s[k];  // of batches that were accumulated
    if (k < measure::BucketRecord::kMostReadyTimes)
      ready.push_back(std::max(0.0, before) + first.ready_s[bucket][k]);
    if (run.workers == 1) continue;
    double shortest = std::numeric_limits<double>::infinity();
    for (const auto& rank : run.ranks) {
      const double end_before = bucket == 0 ? 0 : rank.end_s[bucket - 1][k];
      shortest = std::min(shortest, rank.end_s[bucket][k] - std::max(rank.ready_s[bucket][k], end_before));
    }
    record.transfer_s.push_back(std::max(0.0, shortest));
    record.duration_s.push_back(std::max(0.0, first.end_s[bucket][k] - first.ready_s[bucket][k]));
  }
  return record;
}

}  // namespace

measure::Record record_of(const DdpRun& run, const std::string& where) {
  if (run.ranks.size() != static_cast<std::size_t>(run.workers))
    base::fail(
        ErrorKind::data,
        "{}: only {} of {} ranks gave their steps; let the trainer end on all of them, and measure again",
        where, run.ranks.size(), run.workers);
  const auto most = std::ranges::max_element(run.ranks, {}, &DdpRank::samples)->samples,
             least = std::ranges::min_element(run.ranks, {}, &DdpRank::samples)->samples;
  if (least == 0 || least != most)
    base::fail(
        ErrorKind::data,
        "{}: its ranks have batches of {} to {}, and one batch of all is needed; give the model tensors "
        "whose first dimension is the batch, of equal length on all ranks",
        where, least, most);
  measure::Record record{.kind = "scale", .id = run.row.name()};
  record.settings = run.row.settings;
  record.environment.cpu = run.row.text("device");
  record.environment.build = "Release";
  record.model.name = run.row.text("model");
  record.model.parameters = std::llround(run.row.value("parameters").value_or(0));
  record.data.train_samples = std::llround(run.row.value("train_samples").value_or(0));
  record.workers = run.workers;
  record.local_batch = least;
  record.global_batch = std::int64_t{least} * run.workers;
  record.batch_given_as = "local";
  record.data.steps_per_epoch = record.data.train_samples / record.global_batch;
  record.device = run.row.text("clock") == "device" ? "cuda" : "cpu";
  if (record.device == "cuda") record.device_name = run.row.text("device");
  for (const auto& rank : run.ranks) record.ranks.push_back(rank_record(rank, run.hosts > 1));
  for (std::size_t bucket = 0; bucket < run.bucket_bytes.size(); ++bucket)
    record.buckets.push_back(bucket_record(run, bucket));
  record.window.unit = "steps";
  record.window.warmup_steps = std::llround(run.row.value("warmup").value_or(0));
  record.window.steps = static_cast<std::int64_t>(run.steps.size());
  record.window.samples = record.window.steps * record.global_batch;
  for (const auto& rank : record.ranks) record.window.wall_s = std::max(record.window.wall_s, rank.wall_s);
  auto& communication = record.communication;
  const auto backend = run.row.settings.find("backend");
  communication.communicator = run.workers == 1 ? "none" : "torch.distributed";
  if (run.workers > 1 && backend != run.row.settings.end())
    communication.communicator += " over " + backend->second;
  communication.gradient_bytes = std::llround(sum_of(run.bucket_bytes));
  if (run.workers > 1) {
    communication.processes = run.workers;
    communication.nodes = run.hosts;
  }
  record.notes = run.notes;
  return record;
}

std::vector<measure::Record> records_of_trainer(const std::vector<std::filesystem::path>& paths) {
  std::vector<measure::Record> records;
  std::string other;
  for (const auto& path : paths) {
    if (base::is_file(path) && table::ddp_run().is_it(table::begin_of(path)))
      records.push_back(record_of(table::read_ddp_run(path), path.string()));
    else
      other = path.string();
  }
  if (!records.empty() && !other.empty())
    base::fail(ErrorKind::usage,
               "{} is not of paceline_ddp.py, but other files are; give the files of one of them", other);
  return records;
}

}  // namespace paceline::cli
