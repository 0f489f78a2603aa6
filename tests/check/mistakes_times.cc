/// Times against their parts, their rates, and what a device can do.

#include "check/mistakes.h"

namespace paceline::check::mistakes {
namespace {

using sound::Column;
using sound::Draw;
using sound::forget;
using sound::printed;
using sound::SoundTable;

SoundTable timed_table(std::uint64_t seed) { return sound::draw_table(seed + 3000000, true); }

std::optional<Made> parts_too_long(std::uint64_t seed) {
  auto sound = timed_table(seed);
  for (std::size_t i = 1; i < sound.truth.size(); ++i) {
    auto& one = sound.table.rows[i];
    const auto communication = one.value("communication_s");
    if (!communication || one.knows("data_wait_s") || *communication < 0.06 * sound.truth[i].time ||
        *communication > 0.8 * sound.truth[i].time)
      continue;  // of a compute that is the small rest of two large numbers few digits are left
    one.set("compute_s", printed(sound.truth[i].time * 0.995, sound.digits));
    return Made{sound.table, one.name(), sound.truth[i].time - sound.truth[i].communication};
  }
  return std::nullopt;
}

/// In all rows the communication is what the workers take longer than their share.
std::optional<Made> residual(std::uint64_t seed) {
  constexpr double kLeast = 0.06;
  auto sound = timed_table(seed);
  forget(sound.table,
         {"compute_s", "communication_is", "claimed_bandwidth", "data_wait_s", "communication_s"});
  double right = 0;
  for (std::size_t i = 1; i < sound.truth.size(); ++i) {
    auto& row = sound.table.rows[i];
    const double n = *row.value("workers") / *sound.table.rows[0].value("workers");
    const bool of_all = sound.is_of_epoch || sound.is_strong;
    const double share = *sound.table.rows[0].value("time_s") / (of_all ? n : 1);
    const double left = *row.value("time_s") - share;
    if (left < kLeast * *row.value("time_s") || left > 0.8 * *row.value("time_s")) return std::nullopt;
    row.set("communication_s", printed(left, sound.digits));
    right = share;
  }
  if (sound.is_strong && !sound.is_of_epoch && sound.table.rows[0].value("local_batch").value_or(0) < 64)
    return std::nullopt;
  return Made{sound.table, sound.table.rows.back().name(), right};
}

std::optional<Made> both_covered_and_not(std::uint64_t seed) {
  auto sound = timed_table(seed);
  Draw draw(seed);
  auto& row = sound.table.rows.back();
  const std::string word = draw.one_of({"data", "copy", "evaluation", "startup", "update"});
  row.set("covers", "compute " + word);
  row.set("excludes", word);
  return Made{sound.table, row.name(), {}};
}

std::optional<Made> early_clock(std::uint64_t seed) {
  auto sound = timed_table(seed);
  Draw draw(seed);
  std::size_t row = 0;
  double least = 1e300;
  for (std::size_t i = 0; i < sound.truth.size(); ++i) {
    const double one = *sound.table.rows[i].value("workers") / sound.truth[i].rate;
    if (one < least) row = i;
    least = std::min(least, one);
  }
  if (sound.truth[row].steps < 20) return std::nullopt;  // a tail of one step in twenty is 5 %
  const double beyond = draw.log_between(1.2, 30), peak = draw.one_of({19.5e12, 312e12, 989e12});
  for (auto& one : sound.table.rows) {
    one.set("peak_flops", fmt::format("{:.3e}", peak));
    one.set("flops_per_sample", fmt::format("{:.3e}", beyond * least * peak));
  }
  return Made{sound.table, sound.table.rows[row].name(), sound.truth[row].time * beyond};
}

std::optional<Made> wrong_rate(std::uint64_t seed, double (*factor)(const SoundTable& sound, std::size_t i)) {
  auto sound = timed_table(seed);
  std::optional<Made> made;
  for (std::size_t i = 0; i < sound.truth.size(); ++i) {
    auto& one = sound.table.rows[i];
    if (one.text("rate_of") != "all" || sound.truth[i].steps < 20) continue;
    const double f = factor(sound, i);
    if (std::abs(f - 1) < 0.06) continue;
    one.set("rate_per_s", printed(sound.truth[i].rate * f, sound.digits));
    if (!made) made = Made{.row = one.name(), .right = sound.truth[i].rate};
  }
  if (made) made->table = sound.table;
  return made;
}

double batch_of(const SoundTable& sound, std::size_t i) {
  return *sound.table.rows[i].value("local_batch") * *sound.table.rows[i].value("workers");
}

}  // namespace

std::vector<Mistake> of_times() {
  const std::set<std::string> ratios{"ratio.speedup", "ratio.efficiency"};
  return {
      {"parts too long", "parts.sum", parts_too_long},
      {.name = "a residual", .rule = "parts.residual", .make = residual, .is_weaker = true},
      {"covered and not", "time.covers", both_covered_and_not},
      {"an early clock", "time.clock", early_clock},
      {"rate of one worker", "time.rate",
       [](auto seed) {
         return wrong_rate(seed, [](const SoundTable& sound, std::size_t i) {
           return 1 / *sound.table.rows[i].value("workers");
         });
       },
       ratios},
      {"rate of steps", "time.rate",
       [](auto seed) {
         return wrong_rate(seed, [](const SoundTable& sound, std::size_t i) {
           return sound.is_of_epoch ? sound.truth[i].steps / sound.truth[i].time / sound.truth[i].rate
                                    : 1 / batch_of(sound, i);
         });
       },
       ratios},
      {"rate counted by all", "time.rate",
       [](auto seed) {
         return wrong_rate(seed, [](const SoundTable& sound, std::size_t i) {
           return *sound.table.rows[i].value("workers");
         });
       },
       ratios},
  };
}

}  // namespace paceline::check::mistakes
