#include "analysis/steps/remedies.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace paceline::analysis {
namespace {

constexpr double kWorthIt = 0.01;
constexpr std::size_t kMostRemedies = 6;

/// The bucket times of the repeat that is replayed: the first repeat that has them.
std::optional<BucketTimes> buckets_of(const Cell& cell) {
  for (const measure::Record* record : cell.records)
    if (auto times = bucket_times(*record); times && times->link) return times;
  return std::nullopt;
}

double replayed(const BucketTimes& times, double backward_factor, double bytes_factor, double bandwidth,
                double bucket_bytes) {
  BucketLink link = *times.link;
  link.seconds_per_byte *= bytes_factor / bandwidth;
  std::vector<ReplayedBucket> buckets;
  if (bucket_bytes > 0) {
    buckets = cut_buckets(times.ends, times.ready_s, bucket_bytes, link);
  } else {
    for (std::size_t i = 0; i < times.ends.size(); ++i) {
      const double bytes = times.ends[i] - (i == 0 ? 0 : times.ends[i - 1]);
      // The measured time minus what the remedy saves; the fitted line is used for the saving only.
      const double saved = times.link->seconds(bytes) - link.seconds(bytes);
      buckets.push_back(
          {.ready_s = times.ready_s[i], .transfer_s = std::max(0.0, times.transfer_s[i] - saved)});
    }
  }
  for (auto& bucket : buckets) bucket.ready_s *= backward_factor;
  return exposed_seconds(buckets, backward_factor * times.backward_s);
}

/// The measured step, to which remedies can be applied.
class Trial {
 public:
  explicit Trial(const EfficiencyLoss& loss) : loss_(loss), buckets_(buckets_of(*loss.cell)) {
    if (!buckets_) return;
    const double exposed = loss.lines[Line::latency] + loss.lines[Line::transfer];
    const double told = replayed(*buckets_, 1, 1, 1, 0);
    if (told > exposed && told > 0)
      of_replay_ = exposed / told;
    else
      beyond_replay_s_ = exposed - told;
  }
  [[nodiscard]] bool can_replay() const { return buckets_.has_value(); }
  [[nodiscard]] double all_bytes() const { return buckets_->ends.back(); }

  /// Seconds for as many samples as one measured step has.
  [[nodiscard]] double seconds(const std::vector<Remedy>& chosen) const {
    StepLines lines = loss_.lines;
    double compute = 1, bytes = 1, bandwidth = 1, bucket_bytes = 0, steps = 1;
    double loader_threads = 0;
    for (const Remedy& remedy : chosen) {
      switch (remedy.kind) {
        case RemedyKind::larger_batch:
          steps = 2;
          break;
        case RemedyKind::own_cores:
          compute *= loss_.alone_compute_s / lines[Line::compute];
          break;
        case RemedyKind::even_ranks:
          lines[Line::imbalance] = 0;
          break;
        case RemedyKind::quiet_host:
          lines[Line::jitter] = 0;
          break;
        case RemedyKind::bucket_size:
          bucket_bytes = 1e6 * remedy.value;
          break;
        case RemedyKind::bf16_gradients:
          bytes /= 2;
          break;
        case RemedyKind::faster_link:
          bandwidth *= 2;
          break;
        case RemedyKind::loader_threads:
          loader_threads = remedy.value;
          break;
      }
    }
    const double factor = steps > 1 ? compute * (steps * compute_of_larger()) : compute;
    lines[Line::compute] *= factor;
    // These grow with the number of images. Costs per step are shared by more images.
    for (const Line line : {Line::data_wait, Line::copy, Line::imbalance, Line::jitter}) lines[line] *= steps;
    if (can_replay()) {
      lines[Line::latency] = 0;
      lines[Line::transfer] =
          beyond_replay_s_ + of_replay_ * replayed(*buckets_, factor, bytes, bandwidth, bucket_bytes);
    }
    if (loader_threads > 0)
      lines[Line::data_wait] = steps * left_of_data_wait(loader_threads, lines.total() / steps);
    return lines.total() / steps;
  }

  /// Compute per image at twice the batch, relative to now: interpolated between the two known batches.
  [[nodiscard]] double compute_of_larger() const {
    const double here = loss_.cell->batch_per_worker(), there = loss_.baseline->batch_per_worker();
    if (loss_.mode == Mode::weak || loss_.batch_is_in_sharing || there <= here) return 1;
    const double whole = (loss_.alone_compute_s - loss_[LossPart::smaller_batch].seconds) * there / here;
    const double slope = (whole - loss_.alone_compute_s) / (there - here);
    const double fixed = std::max(0.0, loss_.alone_compute_s - slope * here);
    return (fixed / 2 + slope * here) / (fixed + slope * here);
  }

 private:
  /// Seconds that a step would still wait for data with this many loader threads. `total`: the seconds of the
  /// step with the present wait.
  [[nodiscard]] double left_of_data_wait(double threads, double total) const {
    double prepare = 0;
    int records = 0;
    for (const measure::Record* record : loss_.cell->records)
      for (const auto& rank : record->ranks)
        if (rank.loader_prepare_s > 0 && record->window.steps > 0) {
          prepare += rank.loader_prepare_s / static_cast<double>(record->window.steps);
          ++records;
        }
    const double wait = loss_.lines[Line::data_wait];
    if (records == 0) return 0;
    const double busy = prepare / records / threads;
    return std::clamp(busy - (total - wait), 0.0, wait);
  }

  const EfficiencyLoss& loss_;
  std::optional<BucketTimes> buckets_;
  double beyond_replay_s_ = 0;  ///< exposed transfer that the replay does not explain
  double of_replay_ = 1;        ///< or the fraction of the replayed time that was really exposed
};

int loader_threads_of(const Cell& cell) {
  return cell.records.front()->ranks.empty() ? 0 : cell.records.front()->ranks.front().loader_threads;
}

/// All remedies that could be tried against parts that exceed the noise.
std::vector<Remedy> candidates(const EfficiencyLoss& loss, const Trial& trial) {
  std::vector<Remedy> all;
  const auto is_lost = [&](LossPart part) { return loss[part].seconds > 0 && !loss[part].is_within_noise(); };
  const auto add = [&](RemedyKind kind, LossPart part, bool is_bound, double value = 0) {
    all.push_back({.kind = kind, .part = part, .is_bound = is_bound, .value = value});
  };
  const bool moves = is_lost(LossPart::latency) || is_lost(LossPart::transfer);
  const LossPart moving = loss[LossPart::latency].seconds > loss[LossPart::transfer].seconds
                              ? LossPart::latency
                              : LossPart::transfer;
  if (is_lost(LossPart::smaller_batch) || moves)
    add(RemedyKind::larger_batch, is_lost(LossPart::smaller_batch) ? LossPart::smaller_batch : moving, false,
        2 * static_cast<double>(loss.cell->global_batch));
  const measure::Record& record = loss.cell->record();
  if (is_lost(LossPart::sharing) && !is_of_cuda_engine(record))
    add(RemedyKind::own_cores, LossPart::sharing, true);
  if (is_lost(LossPart::imbalance)) add(RemedyKind::even_ranks, LossPart::imbalance, true);
  if (is_lost(LossPart::jitter)) add(RemedyKind::quiet_host, LossPart::jitter, true);
  // With images on the device nothing is left to prepare, so more threads would not help.
  if (is_lost(LossPart::data_wait) && record.data.images_on != "device")
    add(RemedyKind::loader_threads, LossPart::data_wait, false, loader_threads_of(*loss.cell) + 1);
  if (!moves || !trial.can_replay()) return all;
  double least = trial.seconds({});
  std::optional<Remedy> best;
  for (double megabytes = trial.all_bytes() / 1e6; megabytes > trial.all_bytes() / 1e6 / 128;
       megabytes /= 2) {
    const Remedy one{.kind = RemedyKind::bucket_size, .part = moving, .value = megabytes};
    if (const double seconds = trial.seconds({one}); seconds < least) {
      least = seconds;
      best = one;
    }
  }
  if (best) all.push_back(*best);
  // NCCL does not round; with bf16 the gradients would go through the host, whose speed is not measured here.
  if (processes(record) > 1 && record.communication.communicator != "nccl")
    add(RemedyKind::bf16_gradients, moving, false);
  add(RemedyKind::faster_link, LossPart::transfer, false);
  return all;
}

/// The saving of each subset of `list`; the subset is the index's bits.
std::vector<double> savings(const Trial& trial, const std::vector<Remedy>& list) {
  const double now = trial.seconds({});
  std::vector<double> saved(std::size_t{1} << list.size());
  for (std::size_t set = 0; set < saved.size(); ++set) {
    std::vector<Remedy> chosen;
    for (std::size_t i = 0; i < list.size(); ++i)
      if ((set >> i & 1) != 0) chosen.push_back(list[i]);
    saved[set] = 1 - trial.seconds(chosen) / now;
  }
  return saved;
}

double factorial(std::size_t n) { return n < 2 ? 1 : static_cast<double>(n) * factorial(n - 1); }

/// The Shapley value of `player`: what it adds to the players before it, averaged over all orders.
double shapley(const std::vector<double>& saved, std::size_t players, std::size_t player) {
  double value = 0;
  for (std::size_t set = 0; set < saved.size(); ++set) {
    if ((set >> player & 1) != 0) continue;
    const auto before = static_cast<std::size_t>(__builtin_popcountll(set));
    value += factorial(before) * factorial(players - before - 1) / factorial(players) *
             (saved[set | std::size_t{1} << player] - saved[set]);
  }
  return value;
}

}  // namespace

double Remedies::interaction() const {
  double sum = all;
  for (const Remedy& remedy : list) sum -= remedy.alone;
  return sum;
}

Remedies remedies(const EfficiencyLoss& loss) {
  const Trial trial(loss);
  Remedies result;
  result.list = candidates(loss, trial);
  const double now = trial.seconds({});
  for (Remedy& remedy : result.list) remedy.alone = 1 - trial.seconds({remedy}) / now;
  std::erase_if(result.list, [](const Remedy& remedy) { return remedy.alone < kWorthIt; });
  std::ranges::stable_sort(result.list, std::ranges::greater{}, &Remedy::alone);
  if (result.list.size() > kMostRemedies) result.list.resize(kMostRemedies);
  const auto saved = savings(trial, result.list);
  for (std::size_t i = 0; i < result.list.size(); ++i)
    result.list[i].share = shapley(saved, result.list.size(), i);
  result.all = saved.back();
  return result;
}

}  // namespace paceline::analysis
