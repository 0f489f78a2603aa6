#include "cli/commands/time_left.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::cli {
namespace {

constexpr double kLeastSteps = 3;  ///< of a window, however short its time

double global_batch(const study::PlannedCell& cell) {
  const auto& options = cell.options;
  return static_cast<double>(options.global_batch > 0 ? options.global_batch
                                                      : options.local_batch * options.workers);
}

/// Samples that a cell has computed: a window may have ended early.
double samples_of(const study::PlannedCell& cell, const measure::Record& record) {
  if (cell.options.window_steps != 0)
    return static_cast<double>(record.window.samples) +
           static_cast<double>(record.window.warmup_steps) * global_batch(cell);
  return record.epochs.empty() ? 0 : static_cast<double>(record.epochs.back().updates) * global_batch(cell);
}

}  // namespace

void TimeLeft::note(const study::PlannedCell& cell, const measure::Record& record, double seconds) {
  if (record.data.train_samples > 0) epoch_samples_ = static_cast<double>(record.data.train_samples);
  const double samples = samples_of(cell, record);
  if (!running_ || record.status != "complete" || samples <= 0) return;
  seconds_ += seconds;
  samples_ += samples;
}

double TimeLeft::seconds_of(const study::PlannedCell& cell) const {
  if (!cell.skip.empty() || cell.is_spare) return 0;
  const auto& options = cell.options;
  const double sample = seconds_ / samples_, step = sample * global_batch(cell);
  if (options.window_steps == 0)
    return options.steps > 0 ? static_cast<double>(options.steps) * step
                             : (options.epochs > 0 ? options.epochs : 1) * epoch_samples_ * sample;
  const double timed =
      options.window_steps > 0 ? static_cast<double>(options.window_steps) * step : epoch_samples_ * sample;
  const double limit =
      options.window_seconds > 0 ? std::max(options.window_seconds, kLeastSteps * step) : timed;
  return static_cast<double>(options.warmup_steps) * step + std::min(timed, limit);
}

double TimeLeft::seconds(std::size_t next) const {
  if (samples_ <= 0) return 0;
  double seconds = 0;
  for (std::size_t i = next; i < cells_.size(); ++i) seconds += seconds_of(cells_[i]);
  return seconds;
}

std::string TimeLeft::text(std::size_t next) const {
  if (samples_ <= 0) return "";
  const double left = seconds(next);
  return left < 90 ? fmt::format(", about {:.0f} s left", left)
                   : fmt::format(", about {:.0f} min left", left / 60);
}

}  // namespace paceline::cli
