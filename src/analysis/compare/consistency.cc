#include "analysis/compare/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "analysis/compare/cell.h"
#include "analysis/compare/setup.h"

namespace paceline::analysis {
namespace {

using measure::Record;

void check_batches(const Record& record, std::vector<Finding>& findings) {
  if (record.local_batch * record.workers != record.global_batch)
    findings.push_back({true,
                        fmt::format("{} workers of local batch {} do not make a global batch of {}",
                                    record.workers, record.local_batch, record.global_batch),
                        "size.product"});
  if (record.kind == "evaluate") return;  // nothing is trained, so the batch may exceed the training set
  const auto samples = record.data.train_samples;
  if (samples > 0 && record.global_batch > samples)
    findings.push_back(
        {true,
         fmt::format("a global batch of {} exceeds the {} training samples: every batch is the "
                     "whole set",
                     record.global_batch, samples),
         "size.data"});
  const auto steps = record.data.steps_per_epoch;
  if (samples <= 0 || steps <= 0 || record.local_batch <= 0) return;
  const long workers = implied_workers(samples, steps, record.local_batch);
  const auto expected = samples / std::max<std::int64_t>(1, record.global_batch);
  if (steps == expected) return;  // an epoch consists of whole global batches
  if (workers != record.workers)
    findings.push_back(
        {true, fmt::format("{} steps an epoch over {} samples at {} a worker are the work of {} "
                           "workers, but the record says {}",
                           steps, samples, record.local_batch, workers, record.workers)});
  else
    findings.push_back(
        {true, fmt::format("{} steps an epoch of a global batch of {} over {} samples, which fill {}", steps,
                           record.global_batch, samples, expected)});
}

/// Checks the window's images, and its wall time against that of the ranks.
void check_window(const Record& record, std::vector<Finding>& findings) {
  if (record.ranks.empty() || record.window.steps <= 0) return;
  const auto& window = record.window;
  if (window.samples != window.steps * record.global_batch)
    findings.push_back(
        {true, fmt::format("{} steps of a global batch of {} are not the {} images of the window",
                           window.steps, record.global_batch, window.samples)});
  double longest = 0;
  for (const auto& rank : record.ranks) longest = std::max(longest, rank.wall_s);
  if (std::abs(window.wall_s - longest) > kClosure * longest)
    findings.push_back({true, fmt::format("the window took {:.4g} s, but its longest rank {:.4g} s",
                                          window.wall_s, longest)});
}

void check_ledger(const Record& record, std::vector<Finding>& findings) {
  if (record.window.steps <= 0)
    return;  // resumed at its end: the window lasts a microsecond, whose parts mean nothing
  for (const auto& rank : record.ranks) {
    const double sum = std::accumulate(rank.phases.begin(), rank.phases.end(), 0.0);
    const auto least = std::ranges::min_element(rank.phases);
    if (*least < 0)  // the sum is still right, but another phase is too large by as much
      findings.push_back(
          {true, fmt::format("rank {}: its ledger has {:.4g} s of {}", rank.rank, *least,
                             measure::name(static_cast<measure::Phase>(least - rank.phases.begin())))});
    if (rank.wall_s <= 0 || std::abs(sum / rank.wall_s - 1) <= kClosure) continue;
    findings.push_back(
        {true, fmt::format("rank {}: the ledger's phases add up to {:.4g} s, the wall time is {:.4g} s "
                           "({:+.1f} %): some of it is counted {}",
                           rank.rank, sum, rank.wall_s, (sum / rank.wall_s - 1) * 100,
                           sum > rank.wall_s ? "twice" : "nowhere")});
  }
}

/// The fewest and the most times that a list of single steps of this window may have. The last group of
/// `timed_of` steps has one unless its step was still to come.
std::pair<std::int64_t, std::int64_t> listed_steps(const Record::MeasuredWindow& window) {
  const auto of_each = std::max<std::int64_t>(1, window.timed_of.value_or(1));
  const auto whole = window.steps / of_each;
  return {whole, window.steps % of_each == 0 ? whole : whole + 1};
}

std::string of_each(const Record::MeasuredWindow& window) {
  return window.timed_of ? fmt::format(", of which one in {} has a time", *window.timed_of) : "";
}

/// Checks the sum of all steps against the steps with times of their own, which are some of them.
void check_sum_of_steps(const Record& record, const measure::RankRecord& rank,
                        std::vector<Finding>& findings) {
  if (!record.window.timed_of)
    findings.push_back({true, fmt::format("rank {}: steps_s is {:.4g} s, but each step has a time of its own",
                                          rank.rank, *rank.steps_s)});
  const double listed = std::accumulate(rank.step_s.begin(), rank.step_s.end(), 0.0);
  if (listed > *rank.steps_s * (1 + kClosure))
    findings.push_back(
        {true, fmt::format("rank {}: some of its steps add up to {:.4g} s, and all to {:.4g} s", rank.rank,
                           listed, *rank.steps_s)});
}

/// Checks the steps against the wall clock and the ledger, which are measured independently. A step begins
/// before its first phase and ends after its last. Between steps there are evaluation, checkpoint and time
/// booked on "other": the end of an epoch, the progress callback. So on every rank
///
///     data wait + copy + forward + backward + exposed + update  <=  sum of steps
///                                        <=  wall time - evaluation - checkpoint
///
/// because these are sums of intervals of one clock, each contained in the next, without overlap: the ledger
/// books each second of a rank once. Each repeat is a record of its own, and a resumed run begins window,
/// ledger and steps anew. The tolerance is the ledger's.
void check_steps(const Record& record, std::vector<Finding>& findings) {
  using enum measure::Phase;
  if (record.ranks.empty()) return;
  if (static_cast<int>(record.ranks.size()) != record.workers)
    findings.push_back(
        {true, fmt::format("workers is {}, but ranks lists {}", record.workers, record.ranks.size())});
  for (const auto& rank : record.ranks) {
    const auto [fewest, most_listed] = listed_steps(record.window);
    if (const auto listed = static_cast<std::int64_t>(rank.step_s.size());
        listed < fewest || listed > most_listed) {
      findings.push_back({true, fmt::format("rank {}: the window has {} steps{}, but step_s lists {}",
                                            rank.rank, record.window.steps, of_each(record.window), listed)});
      continue;  // their sum says nothing more
    }
    if (rank.step_s.empty()) continue;
    if (!(rank.wall_s > 0)) {
      findings.push_back({true, fmt::format("rank {}: {} steps were timed in a wall time of {:.4g} s",
                                            rank.rank, rank.step_s.size(), rank.wall_s)});
      continue;
    }
    const double steps = seconds_of_steps(rank);
    if (rank.steps_s) check_sum_of_steps(record, rank, findings);
    const double least =
        seconds_in(rank, {data_wait, copy, forward, backward, exposed_transfer, exposed_wait, update});
    const double most = rank.wall_s - seconds_in(rank, {evaluation, checkpoint});
    const double tolerance = kClosure * rank.wall_s;
    if (steps < least - tolerance)
      findings.push_back(
          {true, fmt::format("rank {}: its steps add up to {:.4g} s, but the ledger has {:.4g} "
                             "s of work and waiting in them",
                             rank.rank, steps, least)});
    if (steps > most + tolerance)
      findings.push_back({true, fmt::format("rank {}: its steps add up to {:.4g} s, but the window left them "
                                            "{:.4g} s",
                                            rank.rank, steps, most)});
  }
}

/// Bytes of votes in the step's buckets, which hold `held` bytes: eight floats if a device's steps were
/// queued. Records that are older than `vote_bytes` do not say whether they were.
std::int64_t vote_bytes(const Record& record, std::int64_t held) {
  constexpr std::int64_t kVotes = 32;
  const auto& travels = record.communication;
  const bool has_votes =
      travels.vote_bytes ? *travels.vote_bytes == kVotes : held == travels.gradient_bytes + kVotes;
  return is_of_cuda_engine(record) && has_votes ? kVotes : 0;
}

/// Checks the bytes and times behind bandwidths: the gradients and votes of a step are the bytes of its
/// buckets, and since collectives run one after the other, they last no longer than the window.
void check_communication(const Record& record, std::vector<Finding>& findings) {
  const std::int64_t gradients = record.communication.gradient_bytes, held = bucket_bytes(record);
  const std::int64_t votes = vote_bytes(record, held);
  if (!record.buckets.empty() && held != gradients + votes)
    findings.push_back(
        {true, fmt::format("a step reduces {} bytes of gradients{}, but its buckets hold {}", gradients,
                           votes > 0 ? fmt::format(" and {} of votes", votes) : "", held)});
  for (const auto& rank : record.ranks) {
    const double tolerance = kClosure * rank.wall_s;
    if (std::abs(rank.communication_s - rank.transfer_s - rank.late_peer_s) > tolerance)
      findings.push_back(
          {true, fmt::format("rank {}: {:.4g} s of transfer and {:.4g} s of waiting for a later "
                             "rank are not its {:.4g} s of communication",
                             rank.rank, rank.transfer_s, rank.late_peer_s, rank.communication_s)});
    else if (rank.communication_s > rank.wall_s + tolerance)
      findings.push_back({true, fmt::format("rank {}: {:.4g} s of communication in a wall time of {:.4g} s",
                                            rank.rank, rank.communication_s, rank.wall_s)});
  }
}

/// Checks the epochs against the window. The window's own epochs are the last ones; epochs from before a
/// resume come first. If the window begins at the start of an epoch, the seconds of its epochs are sums over
/// the same steps. (An epoch cut by a resume covers steps of both runs and is not checked.)
void check_epoch_seconds(const Record& record, std::vector<Finding>& findings) {
  if (record.ranks.empty() || record.epochs.empty() || record.window.steps <= 0) return;
  std::int64_t left = record.window.steps;
  double seconds = 0;
  for (std::size_t i = record.epochs.size(); i-- > 0 && left > 0;) {
    const auto& epoch = record.epochs[i];
    left -= epoch.steps.value_or(epoch.updates - (i > 0 ? record.epochs[i - 1].updates : 0));
    seconds += epoch.seconds;
  }
  if (left != 0) return;
  const double steps = seconds_of_steps(record.ranks.front());
  if (std::abs(seconds - steps) > kClosure * steps)
    findings.push_back(
        {true, fmt::format("the epochs took {:.4g} s, but their steps add up to {:.4g} s", seconds, steps)});
}

/// Upper bound for the cross entropy of a classifier that is right with probability p: correct images cost
/// little, so the mean is about (1 - p) times the cost of an error. An error made with confidence 1 - 1e-13
/// costs 30.
constexpr double kHighestCostOfAnError = 30;

/// A network with at least this accuracy has not diverged. A high loss beside it is a sum instead of a mean,
/// or comes from large logits.
constexpr double kHasLearnt = 0.5;

void check_accuracy(const Record& record, std::vector<Finding>& findings) {
  for (const auto& epoch : record.epochs) {
    if (!epoch.test_accuracy) continue;
    const double p = *epoch.test_accuracy;
    const auto n = static_cast<double>(record.data.test_samples);
    if (p < 0 || p > 1)
      findings.push_back(
          {true, fmt::format("epoch {}: an accuracy of {:.4g} is not between 0 and 1", epoch.epoch, p),
           "accuracy.count"});
    else if (n > 0 && std::abs(p * n - std::round(p * n)) > 1e-6 * n)
      findings.push_back(
          {true,
           fmt::format("epoch {}: an accuracy of {:.6f} is not a whole number of {} images: it was not "
                       "counted over the whole test set once",
                       epoch.epoch, p, record.data.test_samples),
           "accuracy.count"});
    const double bound = (1 - p) * kHighestCostOfAnError + 1;
    if (!epoch.test_loss || *epoch.test_loss <= bound) continue;
    if (p <= kHasLearnt)
      findings.push_back(
          {false, fmt::format("epoch {}: a mean test loss of {:.4g} at an accuracy of {:.1f} %: the training "
                              "has diverged, or the running statistics are not there yet",
                              epoch.epoch, *epoch.test_loss, p * 100)});
    else  // not an error: logits are unbounded, and too high a learning rate makes them large
      findings.push_back(
          {false, fmt::format("epoch {}: a mean test loss of {:.4g} beside an accuracy of {:.1f} % needs "
                              "errors that cost {:.0f} each: logits have grown very large (a rate too high), "
                              "or it is a sum, or of another set",
                              epoch.epoch, *epoch.test_loss, p * 100,
                              *epoch.test_loss / std::max(1 - p, 1 / std::max(n, 1.0)))});
  }
}

/// Checks the length of the warm-up. A short window begins with a full loader queue, so a loader that is too
/// slow would not show yet. The warm-up must be at least as long as the queue.
void check_queue(const Record& record, std::vector<Finding>& findings) {
  constexpr int kQueue = 3;             // batches that a loader holds ready
  constexpr double kFastEnough = 1.25;  // as a multiple of the rate of the steps
  if (record.window.unit != "steps" || record.window.warmup_steps >= kQueue) return;
  for (const auto& rank : record.ranks) {
    if (rank.loader_prepare_s <= 0 || rank.wall_s <= 0 || rank.loader_queue == 0) continue;
    const double speed = rank.wall_s * std::max(1, rank.loader_threads) / rank.loader_prepare_s;
    if (speed >= kFastEnough) continue;
    findings.push_back(
        {false,
         fmt::format("the loader is {:.2f} times as fast as the steps and {} batches were ready before the "
                     "window began: give --warmup-steps {} or more to see what it costs",
                     speed, kQueue, kQueue)});
    return;
  }
}

void check_timing(const Record& record, std::vector<Finding>& findings) {
  if (record.status != "complete") return;
  if (record.window.unit == "steps" && record.window.warmup_steps == 0)
    findings.push_back({false, "timed without warm-up: the first steps pay for memory and caches"});
  if (record.window.steps == 1)
    findings.push_back(
        {false, "a single step was timed: there is no spread and no interval", "protocol.repeats"});
}

void check_memory(const Record& record, std::vector<Finding>& findings) {
  if (!record.memory.peak_bytes || record.memory.plan_bytes <= 0) return;
  if (record.memory.device) return;  // the host memory of a GPU's driver is in no plan
  const double share =
      static_cast<double>(*record.memory.peak_bytes) / static_cast<double>(record.memory.plan_bytes);
  if (std::abs(share - 1) > 0.10)
    findings.push_back(
        {false, fmt::format("the measured peak memory is {:+.0f} % off the plan", (share - 1) * 100)});
}

/// ", most of it by ninja (0.9 cores)"; empty if none of the programs that were seen made up half of it.
std::string text_about_busiest(const Record::MeasuredWindow& window) {
  if (!window.others || window.others->empty()) return "";
  const auto& busiest = window.others->front();
  if (!(busiest.cores >= *window.others_cores / 2)) return "";  // also if a record does not know its cores
  return fmt::format(", most of it by {} ({:.1f} cores)", busiest.name, busiest.cores);
}

}  // namespace

long implied_workers(std::int64_t samples, std::int64_t steps_per_epoch, std::int64_t local_batch) {
  return std::lround(static_cast<double>(samples) /
                     (static_cast<double>(steps_per_epoch) * static_cast<double>(local_batch)));
}

std::optional<std::string> contradiction(const Record& record) {
  for (auto& finding : check(record))
    if (finding.is_error) return std::move(finding.text);
  return std::nullopt;
}

std::vector<Finding> check(const Record& record) {
  std::vector<Finding> findings;
  if (record.status == "skipped" || record.status == "failed") return findings;
  if (record.status == "interrupted" && record.ranks.empty()) return findings;  // not begun
  const auto add = [&](const char* rule, void (*check_part)(const Record&, std::vector<Finding>&)) {
    const auto before = findings.size();
    check_part(record, findings);
    for (auto i = before; i < findings.size(); ++i)
      if (findings[i].rule.empty()) findings[i].rule = rule;
  };
  add("size.workers", check_batches);
  add("record.window", check_window);
  add("parts.sum", check_ledger);
  add("record.steps", check_steps);
  add("record.communication", check_communication);
  add("record.epochs", check_epoch_seconds);
  add("accuracy.loss-scale", check_accuracy);
  add("protocol.warmup", check_timing);
  add("record.loader", check_queue);
  add("record.memory", check_memory);
  return findings;
}

void WindowsBesideOthers::add(const Record& record) {
  const bool was_there = measure::competitors(record) > 0;
  if (!was_there && (!(record.window.wall_s > 0) || record.ranks.empty() || step_seconds(record).empty() ||
                     contradiction(record)))
    return;
  ++all;
  if (was_there)
    ++disturbed;
  else if (!record.window.others_cores && measure::disturbance_of(record) != measure::Disturbance::none)
    ++unknown;  // a run that stood still is disturbed, but perhaps by no program
}

std::string WindowsBesideOthers::text() const {
  return fmt::format("in {} of {} measured windows{}", disturbed > 0 ? disturbed : unknown, all,
                     disturbed > 0 && unknown > 0 ? fmt::format(", and of {} it is not known", unknown) : "");
}

std::optional<Finding> busy(std::span<const Record> records) {
  WindowsBesideOthers windows;
  const Record* worst = nullptr;
  for (const Record& record : records) {
    windows.add(record);
    if (measure::competitors(record) == 0) continue;
    const auto others = [](const Record& one) { return one.window.others_cores.value_or(0); };
    if (worst == nullptr || others(record) > others(*worst)) worst = &record;
  }
  if (worst == nullptr) return std::nullopt;
  const auto of_gpus = measure::text_about_disturbance_of_gpus(*worst);
  std::string which = worst->id;
  if (const double others = worst->window.others_cores.value_or(0);
      measure::is_much(others, worst->environment.cores)) {
    const int cores = worst->environment.cores;  // for a bound process: fewer than the machine has
    which =
        fmt::format("up to {:.1f}{} cores, {}{}", others, others <= cores ? fmt::format(" of {}", cores) : "",
                    worst->id, text_about_busiest(worst->window));
  }
  return Finding{
      false, fmt::format("other programs were at work {} ({}{}{}): times are too long and intervals too wide",
                         windows.text(), which, of_gpus.empty() ? "" : ": ", of_gpus)};
}

std::optional<Finding> paused(std::span<const Record> records) {
  const auto longer = [](const Record& one, const Record& other) {
    return one.window.paused_s.value_or(0) < other.window.paused_s.value_or(0);
  };
  const auto count = std::ranges::count_if(records, measure::stood_still);
  if (count == 0) return std::nullopt;
  const Record& longest = *std::ranges::max_element(records, longer);
  return Finding{
      false, fmt::format("{} of {} windows stood still, for up to {:.1f} s ({}): the run was stopped, or its "
                         "machine was; its times are those of no machine",
                         count, records.size(), longest.window.paused_s.value_or(0), longest.id)};
}

}  // namespace paceline::analysis
