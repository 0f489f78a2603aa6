/// Mistakes in how something was measured and told.

#include "check/mistakes.h"

namespace paceline::check::mistakes {
namespace {

using sound::Column;
using sound::Draw;
using sound::forget;
using sound::printed;
using sound::SoundTable;
using sound::Table;

/// Of so many repeats at least, for each program, without their means.
Table repeats_of(std::uint64_t seed, std::size_t repeats, bool of_two) {
  for (std::uint64_t k = 0;; ++k) {
    Draw draw(seed * 521 + k);
    auto table = sound::repeat_table(draw);
    std::erase_if(table.rows, [](const auto& row) { return row.knows("statistic"); });
    const bool is_of_two = table.rows[0].text("program") != table.rows[1].text("program");
    if (is_of_two == of_two && table.rows.size() >= repeats * (of_two ? 2 : 1)) return table;
  }
}

std::optional<Made> timed_once(std::uint64_t seed) {
  auto sound = sound::draw_table(seed, true);
  forget(sound.table, {"repeats", "statistic"});
  return Made{sound.table, sound.table.rows.back().name(), {}};
}

std::optional<Made> in_all_rows(std::uint64_t seed, Column column, const char* text) {
  auto sound = sound::draw_table(seed, true);
  for (auto& row : sound.table.rows) row.set(column, text);
  return Made{sound.table, sound.table.rows.back().name(), {}};
}

std::optional<Made> spread_as_interval(std::uint64_t seed) {
  auto table = repeats_of(seed, 3, false);
  double mean = 0, squares = 0;
  const auto n = static_cast<double>(table.rows.size());
  for (const auto& row : table.rows) mean += *row.value("time_s") / n;
  for (const auto& row : table.rows) squares += std::pow(*row.value("time_s") - mean, 2);
  const double spread = 1.96 * std::sqrt(squares / (n - 1));
  if (spread <= 0) return std::nullopt;
  auto row = table.rows.front();
  row.set("run", "mean");
  row.set("repeat", "");
  row.set("seed", "");
  row.set("statistic", "mean");
  row.set("repeats", n);
  row.set("time_s", printed(mean, 5));
  row.set("spread_s", printed(spread, 3));
  row.set("spread_is", "ci95");
  table.rows.push_back(row);
  return Made{table, "mean", spread / std::sqrt(n)};
}

std::optional<Made> drifting(std::uint64_t seed) {
  auto table = repeats_of(seed, 6, false);
  double time = *table.rows.front().value("time_s");
  for (auto& row : table.rows) row.set("time_s", printed(time *= 1.02, 5));
  return Made{table, table.rows.front().name(), {}};
}

std::optional<Made> one_seed(std::uint64_t seed) {
  auto table = repeats_of(seed, 3, false);
  for (auto& row : table.rows) {
    row.set("seed", 7);
    row.set("accuracy", "0.9412");
  }
  return Made{table, table.rows.front().name(), {}};
}

std::optional<Made> one_after_the_other(std::uint64_t seed) {
  auto table = repeats_of(seed, 3, true);
  std::ranges::stable_sort(table.rows, {}, [](const auto& row) { return row.text("program"); });
  return Made{table, "", {}};
}

std::optional<Made> words_only(std::uint64_t seed) {
  auto sound = sound::draw_table(seed, true);
  forget(sound.table, {"claimed_speedup", "claimed_efficiency", "claimed_bandwidth"});
  Draw draw(seed);
  sound.table.rows.back().set(
      "claim", draw.one_of({"near-linear scaling", "Scales almost perfectly", "a significant speedup",
                            "Twice as fast", "the network is the bottleneck"}));
  return Made{sound.table, sound.table.rows.back().name(), {}};
}

}  // namespace

std::vector<Mistake> of_protocol() {
  return {
      {"timed once", "protocol.repeats", timed_once},
      {"no warm-up", "protocol.warmup", [](auto seed) { return in_all_rows(seed, "warmup", "0"); }},
      {"best shown", "protocol.best", [](auto seed) { return in_all_rows(seed, "statistic", "best"); }},
      {"spread as interval", "protocol.spread", spread_as_interval},
      {"drifting", "protocol.drift", drifting},
      {"one seed", "protocol.seeds", one_seed},
      {"one after the other", "protocol.order", one_after_the_other},
      {"idle", "protocol.idle", [](auto seed) { return in_all_rows(seed, "utilisation", "0"); }},
      {"words only", "protocol.no-figure", words_only},
  };
}

}  // namespace paceline::check::mistakes
