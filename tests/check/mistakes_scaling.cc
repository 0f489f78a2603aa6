/// Ratios without workers, super-linear and slower rows, weak called strong, one source, extrapolations,
/// settings.

#include "check/mistakes.h"

namespace paceline::check::mistakes {
namespace {

using sound::Column;
using sound::Draw;
using sound::forget;
using sound::printed;
using sound::SoundTable;

SoundTable scaling_table(std::uint64_t seed) { return sound::draw_table(seed + 2000000, true); }

double growth(const SoundTable& sound, std::size_t i) {
  return *sound.table.rows[i].value("workers") / *sound.table.rows.front().value("workers");
}

/// Leaves workers, batches and times alone.
void only_times(SoundTable& sound) {
  forget(sound.table, {"claimed_speedup", "claimed_efficiency", "compute_s", "communication_s", "data_wait_s",
                       "rate_per_s", "rate_of", "claimed_bandwidth", "communication_is", "spread_s",
                       "spread_is", "repeats", "statistic"});
}

/// The time that makes row `i` so many times as fast as the first one.
double time_of(const SoundTable& sound, std::size_t i, double speedup) {
  const double all = sound.is_of_epoch || sound.is_strong ? 1 : growth(sound, i);
  return sound.truth.front().time * all / speedup;
}

std::optional<Made> with_last_speedup(std::uint64_t seed, double over_scale, double fixed) {
  auto sound = scaling_table(seed);
  const auto last = sound.truth.size() - 1;
  if (sound.is_strong && !sound.is_of_epoch)
    return std::nullopt;  // batches of floors: not exactly one global batch
  only_times(sound);
  const double speedup = fixed > 0 ? fixed : over_scale * growth(sound, last);
  sound.table.rows[last].set("time_s", printed(time_of(sound, last, speedup), sound.digits));
  return Made{sound.table, sound.table.rows[last].name(), speedup};
}

std::optional<Made> without_workers(std::uint64_t seed) {
  auto sound = scaling_table(seed);
  if (!sound.is_of_epoch) return std::nullopt;
  auto& last = sound.table.rows.back();
  for (const Column column :
       {Column("workers"), Column("claimed_efficiency"), Column("steps"), Column("scaling")})
    last.set(column, "");
  return Made{sound.table, last.name(), sound.truth.back().speedup};
}

std::optional<Made> called_otherwise(std::uint64_t seed, bool weak_is_called_strong) {
  auto sound = scaling_table(seed);
  auto& rows = sound.table.rows;
  if (sound.is_strong == weak_is_called_strong || !rows.front().knows("local_batch")) return std::nullopt;
  if (sound.is_strong && rows[0].text("local_batch") == rows[1].text("local_batch")) return std::nullopt;
  for (auto& row : rows) row.set("scaling", weak_is_called_strong ? "strong" : "weak");
  return Made{sound.table, rows[1].name(), {}};
}

std::optional<Made> one_source(std::uint64_t seed) {
  auto sound = scaling_table(seed);
  const auto last = sound.truth.size() - 1;
  if (growth(sound, last) < 4) return std::nullopt;
  only_times(sound);
  Draw draw(seed);
  double most = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    const double n = *sound.table.rows[i].value("workers");
    const double faster = i == 0 ? 1 : draw.between(1.02, 1.35);
    const double all = sound.is_of_epoch ? *sound.table.rows[i].value("train_samples")
                                         : *sound.table.rows[i].value("local_batch") * n;
    const double rate = *sound.table.rows[0].value("train_samples") / 100.0 * faster;
    sound.table.rows[i].set("time_s", printed(all / rate, sound.digits));
    sound.table.rows[i].set("covers", "data compute communication");
    most = std::max(most, rate);
  }
  if (sound.truth.back().steps < 20) return std::nullopt;  // of few steps nobody knows the images
  return Made{sound.table, sound.table.rows.front().name(), most};
}

std::optional<Made> beyond_reach(std::uint64_t seed) {
  auto sound = scaling_table(seed);
  auto row = sound.table.rows.back();
  const double n = *row.value("workers") * 8;
  forget(sound.table, {"steps", "global_batch"});
  sound::Table more;
  more.rows = {row};
  forget(more, {"time_s", "rate_per_s", "rate_of", "compute_s", "communication_s", "data_wait_s", "steps",
                "spread_s", "spread_is", "repeats", "statistic", "claimed_efficiency", "claimed_bandwidth",
                "global_batch", "accuracy", "loss", "scaling", "local_batch"});
  row = more.rows.front();
  row.set("run", "predicted");
  row.set("workers", n);
  row.set("claimed_speedup", printed(growth(sound, sound.truth.size() - 1) * 6, 3));
  sound.table.rows.push_back(row);
  return Made{sound.table, "predicted", {}};
}

std::optional<Made> other_precision(std::uint64_t seed) {
  auto sound = scaling_table(seed);
  for (auto& row : sound.table.rows) row.settings["precision"] = "bf16";
  sound.table.rows.front().settings["precision"] = "fp32";
  return Made{sound.table, sound.table.rows[1].name(), {}};
}

std::optional<Made> other_device(std::uint64_t seed) {
  auto sound = scaling_table(seed);
  for (auto& row : sound.table.rows) row.set("device", "H100");
  sound.table.rows.front().set("device", "A100");
  return Made{sound.table, sound.table.rows[1].name(), {}};
}

std::optional<Made> two_times(std::uint64_t seed) {
  auto sound = scaling_table(seed);
  auto copy = sound.table.rows.back();
  for (const Column column : {Column("claimed_speedup"), Column("claimed_efficiency"), Column("rate_per_s"),
                              Column("compute_s"), Column("communication_s"), Column("claimed_bandwidth")})
    copy.set(column, "");
  copy.set("run", "again");
  copy.set("time_s", printed(sound.truth.back().time * 1.9, sound.digits));
  if (copy.knows("spread_s") && *copy.value("spread_s") >= 0.05 * *copy.value("time_s")) return std::nullopt;
  sound.table.rows.push_back(copy);
  return Made{sound.table, "again", {}};
}

std::optional<Made> other_epochs(std::uint64_t seed) {
  auto sound = scaling_table(seed);
  if (!sound.is_of_epoch) return std::nullopt;
  Draw draw(seed);
  const auto rows = sound.table.rows;
  const double epochs = draw.whole(5, 100);
  double last = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto row = rows[i];
    for (const Column column :
         {Column("claimed_speedup"), Column("claimed_efficiency"), Column("rate_per_s"), Column("rate_of"),
          Column("compute_s"), Column("communication_s"), Column("claimed_bandwidth"), Column("steps"),
          Column("spread_s"), Column("spread_is"), Column("repeats"), Column("accuracy"), Column("loss"),
          Column("statistic"), Column("baseline"), Column("data_wait_s")})
      row.set(column, "");
    row.set("run", "run " + row.text("run"));
    row.set("time_of", "run");
    last = i + 1 == rows.size() ? epochs * 0.6 : epochs;
    row.set("time_s", printed(sound.truth[i].time * last, sound.digits));
    sound.table.rows.push_back(row);
  }
  return Made{sound.table, sound.table.rows.back().name(), last};
}

/// A table that prints ratios and no times, as many do, with one efficiency that is not its speedup over its
/// workers.
std::optional<Made> claims_that_contradict(std::uint64_t seed) {
  auto sound = scaling_table(seed);
  Draw draw(seed + 1);
  auto& rows = sound.table.rows;
  const double fewest = *rows.front().value("workers");
  for (auto& row : rows) {
    for (const Column column :
         {Column("time_s"), Column("rate_per_s"), Column("compute_s"), Column("communication_s"),
          Column("data_wait_s"), Column("baseline"), Column("statistic"), Column("claimed_bandwidth"),
          Column("spread_s"), Column("spread_is"), Column("steps"), Column("repeats"), Column("scaling"),
          Column("claimed_speedup"), Column("claimed_efficiency")})
      row.set(column, "");
    const double scale = *row.value("workers") / fewest;
    const double efficiency = scale == 1 ? 1 : 0.6 + 0.004 * draw.whole(0, 90);
    row.set("claimed_efficiency", printed(efficiency, 4));
    row.set("claimed_speedup", printed(efficiency * scale, 4));
  }
  auto& last = rows.back();
  const double scale = *last.value("workers") / fewest;
  if (scale <= 1) return std::nullopt;
  const double right = *last.value("claimed_speedup") / scale;
  last.set("claimed_efficiency", printed(right * 1.1, 4));
  return Made{sound.table, last.name(), right};
}

}  // namespace

std::vector<Mistake> of_scaling() {
  return {
      {"no workers", "ratio.no-workers", without_workers, {"time.rate"}},
      {"claims that contradict", "ratio.claims", claims_that_contradict},
      {"faster than its workers", "ratio.superlinear",
       [](auto seed) { return with_last_speedup(seed, 1.5, 0); }},
      {"slower", "scaling.slower", [](auto seed) { return with_last_speedup(seed, 0, 0.6); }},
      {"strong called weak", "scaling.mixed", [](auto seed) { return called_otherwise(seed, false); }},
      {"weak called strong", "scaling.mixed", [](auto seed) { return called_otherwise(seed, true); }},
      {"one source", "input.ceiling", one_source},
      {"beyond reach", "predict.reach", beyond_reach},
      {"other precision", "compare.settings", other_precision},
      {"other device", "compare.settings", other_device},
      {"two times", "compare.conflict", two_times},
      {"other epochs", "compare.epochs", other_epochs},
  };
}

}  // namespace paceline::check::mistakes
