/// Ratios and bandwidths that were worked out in a known wrong way, in all cells of a column.

#include "check/mistakes.h"

namespace paceline::check::mistakes {
namespace {

using sound::Column;
using sound::Row;
using sound::SoundTable;
using sound::Table;

void put(SoundTable& sound, std::size_t i, Column column, double value) {
  sound.table.rows[i].set(column, sound::printed(value, sound.digits, sound.cuts));
}

double scale_of(const SoundTable& sound, std::size_t i) {
  return *sound.table.rows[i].value("workers") / *sound.table.rows.front().value("workers");
}

SoundTable full_table(std::uint64_t seed) { return sound::draw_table(seed + 1000000, true); }

constexpr double kLimit = 0.06;  // twice the 3 % by which a wrong form must differ

Mistake ratio(const char* name, bool of_efficiency, double (*wrong)(double right, double n)) {
  return {name, of_efficiency ? "ratio.efficiency" : "ratio.speedup",
          [=](std::uint64_t seed) -> std::optional<Made> {
            auto sound = full_table(seed);
            std::optional<Made> made;
            for (std::size_t i = 1; i < sound.truth.size(); ++i) {
              const double one = of_efficiency ? sound.truth[i].efficiency : sound.truth[i].speedup;
              const double value = wrong(one, scale_of(sound, i));
              if (value <= 0) return std::nullopt;
              put(sound, i, of_efficiency ? Column("claimed_efficiency") : Column("claimed_speedup"), value);
              if (!made && std::abs(value / one - 1) > kLimit)
                made = Made{.row = sound.table.rows[i].name(), .right = one};
            }
            if (made) made->table = sound.table;
            return made;
          }};
}

/// `f` gives a factor on the right figure, 1 for none.
Mistake bandwidth(const char* name, bool of_algbw, double (*f)(const SoundTable& sound, std::size_t i)) {
  return {name, "bandwidth.formula", [=](std::uint64_t seed) -> std::optional<Made> {
            auto sound = full_table(seed);
            std::optional<Made> made;
            for (std::size_t i = 1; i < sound.truth.size(); ++i) {
              auto& one = sound.table.rows[i];
              const auto claim = one.value("claimed_bandwidth");
              if (!claim || (one.text("bandwidth_is") == "algbw") != of_algbw) continue;
              const double factor = f(sound, i);
              if (std::abs(factor - 1) < kLimit) continue;
              put(sound, i, Column("claimed_bandwidth"), *claim * factor);
              if (!made) made = Made{.row = one.name(), .right = *claim};
            }
            if (made) made->table = sound.table;
            return made;
          }};
}

double n_of(const SoundTable& sound, std::size_t i) { return *sound.table.rows[i].value("workers"); }
double ring_of(const SoundTable& sound, std::size_t i) { return 2 * (n_of(sound, i) - 1) / n_of(sound, i); }

/// Cells of a column of ratios that slipped by one row.
std::optional<Made> shifted(std::uint64_t seed) {
  auto sound = full_table(seed);
  // Rows of as many workers as another one: the same study at another batch.
  const auto half = sound.table.rows.size();
  if (half < 2 || !sound.table.rows[0].knows("local_batch")) return std::nullopt;
  const std::string other = "other batch";
  std::vector<Row> more;
  for (std::size_t i = 0; i < half; ++i) {
    auto row = sound.table.rows[i];
    const double b = std::floor(*row.value("local_batch") / 2), slower = i == 0 ? 1 : 1.3;
    if (b < 1 || (sound.is_strong && b * 2 != *row.value("local_batch"))) return std::nullopt;
    row.set("run", other + " " + row.text("run"));
    if (row.knows("baseline")) row.set("baseline", other + " " + row.text("baseline"));
    for (const Column column :
         {Column("global_batch"), Column("rate_per_s"), Column("rate_of"), Column("steps"),
          Column("compute_s"), Column("communication_s"), Column("claimed_bandwidth"),
          Column("claimed_efficiency"), Column("data_wait_s")})
      row.set(column, "");
    row.set("local_batch", b);
    row.set("time_s", sound::printed(sound.truth[i].time * slower * 1.01, sound.digits));
    row.set("claimed_speedup", "");
    more.push_back(row);
  }
  for (auto& row : sound.table.rows)
    if (row.knows("claimed_efficiency")) row.set("claimed_efficiency", "");
  // The claim of the last row is that of the other batch.
  const double wrong = sound.truth[half - 1].speedup / 1.3;
  put(sound, half - 1, "claimed_speedup", wrong);
  sound.table.rows.insert(sound.table.rows.end(), more.begin(), more.end());
  return Made{sound.table, sound.table.rows[half - 1].name(), sound.truth[half - 1].speedup};
}

/// The claims of two rows, each that of the other.
std::optional<Made> exchanged(std::uint64_t seed) {
  auto sound = full_table(seed);
  if (sound.truth.size() < 3) return std::nullopt;
  const double a = sound.truth[1].speedup, b = sound.truth[2].speedup;
  // Below, the claim may follow from another mistake, or from the right figure.
  if (std::abs(a / b - 1) < 2 * kLimit || std::abs(a * b - 1) < 2 * kLimit) return std::nullopt;
  put(sound, 1, "claimed_speedup", b);
  put(sound, 2, "claimed_speedup", a);
  for (auto& row : sound.table.rows) row.set("claimed_efficiency", "");
  return Made{sound.table, sound.table.rows[1].name(), a};
}

std::optional<Made> unclaimed(std::uint64_t seed) {
  auto sound = full_table(seed);
  for (auto& row : sound.table.rows)
    for (const Column column :
         {Column("claimed_speedup"), Column("claimed_efficiency"), Column("rate_per_s")})
      row.set(column, "");
  return Made{sound.table, sound.table.rows[1].name()};
}

}  // namespace

std::vector<Mistake> of_claims() {
  return {
      ratio("speedup times N", false, [](double s, double n) { return s * n; }),
      ratio("speedup over N", false, [](double s, double n) { return s / n; }),
      ratio("speedup inverted", false, [](double s, double) { return 1 / s; }),
      ratio("speedup as time saved", false, [](double s, double) { return 1 - 1 / s; }),
      {"speedup of other rows", "ratio.speedup", shifted},
      {"speedups exchanged", "ratio.speedup", exchanged},
      {"no ratio claimed", "ratio.unclaimed", unclaimed},
      ratio("efficiency times N", true, [](double e, double n) { return e * n; }),
      ratio("efficiency over N", true, [](double e, double n) { return e / n; }),
      ratio("efficiency inverted", true, [](double e, double) { return 1 / e; }),
      ratio("efficiency times N twice", true, [](double e, double n) { return e * n * n; }),
      bandwidth("bytes of one step", false,
                [](const SoundTable& sound, std::size_t i) {
                  return sound.is_of_epoch ? 1 / sound.truth[i].steps : 1.0;
                }),
      bandwidth("MB for GB", false, [](const SoundTable&, std::size_t) { return 1000.0; }),
      bandwidth("bits for bytes", false, [](const SoundTable&, std::size_t) { return 8.0; }),
      bandwidth("bytes for bits", true, [](const SoundTable&, std::size_t) { return 1 / 8.0; }),
      bandwidth("no ring factor", false,
                [](const SoundTable& sound, std::size_t i) { return 1 / ring_of(sound, i); }),
      bandwidth("ring factor in algbw", true,
                [](const SoundTable& sound, std::size_t i) { return ring_of(sound, i); }),
      bandwidth("2 N - 2", false, [](const SoundTable& sound, std::size_t i) { return n_of(sound, i); }),
      bandwidth("elements", false, [](const SoundTable&, std::size_t) { return 0.25; }),
      bandwidth("GiB for GB", true, [](const SoundTable&, std::size_t) { return 1 / 1.073741824; }),
      bandwidth("one step in MB", false,
                [](const SoundTable& sound, std::size_t i) {
                  return sound.is_of_epoch ? 1000 / sound.truth[i].steps : 1.0;
                }),
  };
}

}  // namespace paceline::check::mistakes
