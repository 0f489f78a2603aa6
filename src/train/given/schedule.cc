#include "train/given/schedule.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <system_error>

#include "train/given/names.h"

namespace paceline::train {

UpdateCount::UpdateCount(const std::filesystem::path& out)
    : path_(out.empty() ? std::filesystem::path() : out / kUpdatesDone) {}

void UpdateCount::set(std::int64_t updates) {
  if (path_.empty()) return;
  if (!file_.is_open()) {
    std::error_code ignored;  // then it cannot be opened either
    std::filesystem::create_directories(path_.parent_path(), ignored);
    file_ = base::Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!file_.is_open()) return path_.clear();
  }
  // Always the same length, so that no part of an older number remains.
  const auto line = fmt::format("{:019}\n", updates);
  [[maybe_unused]] const auto written = ::pwrite(file_.get(), line.data(), line.size(), 0);
}

void UpdateCount::forget() {
  std::error_code ignored;
  if (file_.is_open()) std::filesystem::remove(path_, ignored);
}

std::optional<std::int64_t> counted_updates(const std::filesystem::path& out) {
  std::ifstream file(out / kUpdatesDone);
  std::int64_t updates = 0;
  if (file >> updates && updates >= 0) return updates;
  return std::nullopt;
}

namespace {

/// From `from` to `to` along half a cosine; `part` in [0, 1].
double cosine_between(double from, double to, double part) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * std::clamp(part, 0.0, 1.0)));
}

/// Whether it is known for which batch the rate is meant: it was given, or the rate is SGD's default. A rate
/// chosen for this training, or the default of Adam and similar optimizers, belongs to no batch, so no scaled
/// rate is suggested beside it.
bool belongs_to_a_batch(const Options& options) {
  const bool is_usual = options.rule.kind == engine::UpdateKind::sgd && options.lr == Options{}.lr;
  return options.lr_batch > 0 || is_usual;
}

}  // namespace

double learning_rate(const ScheduleOptions& options, double peak, std::int64_t update, const Length& length) {
  const double warmup = options.warmup_epochs * static_cast<double>(length.updates_per_epoch);
  if (static_cast<double>(update) < warmup) {
    const double start = options.warmup_start;  // if above 0 it is the rate of the first update
    const double done = static_cast<double>(start > 0 ? update : update + 1) / warmup;
    return start + (peak - start) * std::min(1.0, done);
  }
  const double rest = std::max(1.0, static_cast<double>(length.updates) - warmup);
  const double part = (static_cast<double>(update) - warmup) / rest;
  switch (options.kind) {
    case ScheduleKind::constant:
    case ScheduleKind::plateau:  // times ValidationWatch::rate_factor()
      return peak;
    case ScheduleKind::step: {
      const double epochs = static_cast<double>(update) / static_cast<double>(length.updates_per_epoch);
      return peak * std::pow(options.step_factor, std::floor(epochs / options.step_epochs));
    }
    case ScheduleKind::cosine:
      return cosine_between(peak, peak * options.final_factor, part);
    case ScheduleKind::one_cycle:
      if (part < options.one_cycle_peak)
        return cosine_between(peak * options.one_cycle_start, peak, part / options.one_cycle_peak);
      return cosine_between(peak, peak * options.final_factor,
                            (part - options.one_cycle_peak) / (1 - options.one_cycle_peak));
    case ScheduleKind::polynomial: {
      const double left = std::pow(std::clamp(1 - part, 0.0, 1.0), options.polynomial_power);
      return peak * (options.final_factor + (1 - options.final_factor) * left);
    }
  }
  return peak;
}

ScaledRate scaled_rate(const Options& options, std::int64_t global_batch) {
  const bool is_scaled = options.scale_lr != LrScaling::none;
  ScaledRate rate;
  rate.base = options.lr;
  rate.reference_batch = options.lr_batch > 0 ? options.lr_batch : 128;
  rate.rule = name(options.scale_lr);
  const double ratio = static_cast<double>(global_batch) / static_cast<double>(rate.reference_batch);
  if (is_scaled) rate.factor = options.scale_lr == LrScaling::linear ? ratio : std::sqrt(ratio);
  rate.peak = rate.base * rate.factor;
  if (is_scaled)
    rate.sentence = fmt::format("learning rate {:g} x {:g} = {:g} ({}: global batch {} / {})", rate.base,
                                rate.factor, rate.peak, rate.rule, global_batch, rate.reference_batch);
  else if (belongs_to_a_batch(options) && ratio != 1)
    rate.sentence = fmt::format(
        "learning rate {:g} (not scaled by the global batch {}; linear scaling from {} would be {:g})",
        rate.base, global_batch, rate.reference_batch, rate.base * ratio);
  else
    rate.sentence = fmt::format("learning rate {:g}", rate.base);
  return rate;
}

}  // namespace paceline::train
