#include "cli/screen/remaining_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "measure/statistics.h"

namespace paceline::cli {
namespace {

using study::PlannedCell;

constexpr double kWorthShowing = 0.1;
/// Cost of evaluating an image relative to training: only the forward pass.
constexpr double kEvaluationCost = 1.0 / 3;

double samples_per_worker(const PlannedCell& cell) {
  return static_cast<double>(cell.global_batch()) / cell.options.workers;
}

double samples_per_step(const PlannedCell& cell) { return samples_per_worker(cell) * cell.options.workers; }

bool is_timed(const PlannedCell& cell) { return cell.options.window_steps != 0; }

/// The text that repeats have in common.
std::string key_of(const PlannedCell& cell) {
  const auto& options = cell.options;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", cell.kind, cell.variant, cell.stage, options.workers,
                     options.threads, samples_per_worker(cell), options.window_steps, options.window_seconds,
                     options.placement == train::Placement::spread);
}

/// Seconds of one step.
double seconds_of_step(const measure::Record& record) {
  if (record.ranks.empty() || record.ranks.front().step_s.empty()) return 0;
  return measure::quantile(record.ranks.front().step_s, 0.5);
}

}  // namespace

double seconds_of_window(const train::Options& options, double step, double steps) {
  double window = steps * step;
  if (options.window_seconds > 0)
    window = std::min(window, std::max(options.window_seconds, kLeastWindowSteps * step));
  return static_cast<double>(options.warmup_steps) * step + std::max(window, options.least_window_seconds);
}

RemainingTime::RemainingTime(const std::vector<PlannedCell>& cells, int cores)
    : cells_(cells), cores_(cores) {
  for (const PlannedCell& cell : cells) {
    chance_.push_back(cell.skip.empty() ? cell.chance : 0);
    keys_.push_back(key_of(cell));
  }
}

void RemainingTime::begin(std::size_t cell, study::Begin how) {
  current_ = cell;
  how_ = how;
  began_ = base::Clock::now();
  chance_[cell] = cells_[cell].skip.empty() && how != study::Begin::kept ? 1 : 0;
}

void RemainingTime::choose(const std::vector<std::size_t>& places) {
  const PlannedCell& one = cells_[places.front()];
  for (std::size_t i = 0; i < cells_.size(); ++i)
    if (cells_[i].is_spare == one.is_spare && cells_[i].stage == one.stage) chance_[i] = 0;
  for (const std::size_t place : places) chance_[place] = 1;
}

RemainingTime::CoreLayout RemainingTime::layout_of(const PlannedCell& cell) const {
  const auto& options = cell.options;
  return {options.workers, options.threads > 0 ? options.threads : std::max(1, cores_ / options.workers)};
}

/// The number of cores in use; a device counts as one.
double RemainingTime::cores_of(const CoreLayout& layout) const {
  const bool is_on_cores = cells_.empty() || cells_.front().options.device == "cpu";
  return is_on_cores ? std::min(cores_, layout.first * layout.second) : layout.first;
}

void RemainingTime::learn(const PlannedCell& cell, double core_seconds_of_image, bool is_training) {
  if (!is_training) by_batch_[samples_per_worker(cell)].add(core_seconds_of_image);
  if (by_batch_.empty()) by_batch_[samples_per_worker(cell)].add(core_seconds_of_image);
  const double ratio = core_seconds_of_image / of_batch(samples_per_worker(cell));
  if (is_training)
    trainings_.add(ratio);
  else
    by_layout_[layout_of(cell)].add(ratio);
}

void RemainingTime::note(std::size_t place, const measure::Record& record, double seconds) {
  const PlannedCell& cell = cells_[place];
  chance_[place] = 0;
  if (record.data.train_samples > 0) {
    epoch_samples_ = static_cast<double>(record.data.train_samples);
    test_samples_ = static_cast<double>(record.data.test_samples);
  }
  double before = 0;
  bool is_whole = how_ == study::Begin::anew;
  if (!cell.training.empty() && !record.epochs.empty()) {
    const auto found = trained_.find(cell.training);
    if (found != trained_.end()) before = found->second;
    // In a search a training continues in the next rung, and what this run added is known.
    is_whole = is_whole || (how_ == study::Begin::resumed && found != trained_.end());
    trained_[cell.training] = static_cast<double>(record.epochs.back().updates) * samples_per_step(cell);
  }
  if (!is_whole || how_ == study::Begin::kept || record.status != "complete") return;
  spent_ += seconds;
  seconds_[keys_[place]].add(seconds);
  if (cell.is_of_collectives()) return;  // no image was trained
  const double cores = cores_of(layout_of(cell));
  if (!is_timed(cell)) {
    const double samples = work_of_training(cell, trained_[cell.training] - before);
    if (samples > 0) learn(cell, seconds * cores / samples, true);
    return;
  }
  const double step = seconds_of_step(record);
  if (step <= 0) return;
  learn(cell, step * cores / samples_per_step(cell), false);
  const auto steps = static_cast<double>(record.window.steps + record.window.warmup_steps);
  beside_.push_back(std::max(0.0, seconds - steps * step));
}

/// Interpolates linearly over the logarithm of the batch; beyond the measured batches uses the nearest.
double RemainingTime::of_batch(double batch) const {
  const auto above = by_batch_.lower_bound(batch);
  if (above == by_batch_.begin()) return above->second.value();
  const auto below = std::prev(above);
  if (above == by_batch_.end()) return below->second.value();
  const double part = std::log(batch / below->first) / std::log(above->first / below->first);
  return below->second.value() + part * (above->second.value() - below->second.value());
}

/// Core-seconds for an image.
double RemainingTime::of_image(const PlannedCell& cell) const {
  const double base = of_batch(samples_per_worker(cell));
  if (!is_timed(cell)) return base * (trainings_.n > 0 ? trainings_.value() : 1);
  const auto layout = by_layout_.find(layout_of(cell));
  return base * (layout != by_layout_.end() ? layout->second.value() : 1);
}

double RemainingTime::timed_seconds(const PlannedCell& cell) const {
  const auto& options = cell.options;
  const double step = of_image(cell) * samples_per_step(cell) / cores_of(layout_of(cell));
  const double steps = options.window_steps > 0 ? static_cast<double>(options.window_steps)
                                                : std::floor(epoch_samples_ / samples_per_step(cell));
  const double beside = beside_.empty() ? 0 : measure::quantile(beside_, 0.5);
  return seconds_of_window(options, step, steps) + beside;
}

/// The work in trained images; evaluated images count as a fraction.
double RemainingTime::work_of_training(const PlannedCell& cell, double samples) const {
  const int every = cell.options.evaluate_every;
  if (every <= 0 || epoch_samples_ <= 0) return samples;
  constexpr double kDroppedTail = 0.1;  ///< fraction of an epoch that is dropped because it fills no batch
  double evaluations = std::floor((samples / epoch_samples_ + kDroppedTail) / every);
  if (const auto steps = cell.options.evaluate_steps; steps > 0)
    evaluations += std::floor(samples / samples_per_step(cell) / static_cast<double>(steps));
  return samples + evaluations * kEvaluationCost * test_samples_;
}

/// The work that the cell still has to do.
double RemainingTime::training_work(std::size_t place) const {
  const PlannedCell& cell = cells_[place];
  const auto& options = cell.options;
  if (options.steps > 0)
    return work_of_training(cell, static_cast<double>(options.steps) * samples_per_step(cell));
  double epochs = options.epochs > 0 ? options.epochs : 1, before = 0;
  if (options.pause_after_epochs > 0)
    epochs = std::min(epochs, static_cast<double>(options.pause_after_epochs));
  // Earlier rungs of a search have done a part of it.
  for (std::size_t i = 0; i < place; ++i)
    if (!cell.training.empty() && cells_[i].training == cell.training)
      before = std::max(before, static_cast<double>(cells_[i].options.pause_after_epochs));
  return work_of_training(cell, std::max(0.0, epochs - before) * epoch_samples_);
}

std::optional<double> RemainingTime::cost(std::size_t place) const {
  const PlannedCell& cell = cells_[place];
  if (!cell.skip.empty()) return 0;
  if (const auto own = seconds_.find(keys_[place]); own != seconds_.end()) return own->second.value();
  if (cell.is_of_collectives()) return cell.collectives_s;
  if (by_batch_.empty()) return std::nullopt;
  if (is_timed(cell)) return timed_seconds(cell);
  return training_work(place) * of_image(cell) / cores_of(layout_of(cell));
}

std::optional<double> RemainingTime::seconds() const {
  if (by_batch_.empty()) return std::nullopt;
  double left = 0;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (chance_[i] <= 0) continue;
    double seconds = *cost(i);
    if (i == current_ && began_ != base::TimePoint())
      seconds = std::max(0.0, seconds - base::seconds_since(began_));
    left += chance_[i] * seconds;
  }
  return left;
}

std::optional<double> RemainingTime::shown() const {
  const auto left = seconds();
  if (!left || spent_ < kWorthShowing * (spent_ + *left)) return std::nullopt;
  return left;
}

}  // namespace paceline::cli
