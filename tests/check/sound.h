#pragma once

/// Tables as a careful author would print them, drawn from a consistent model: compute, a ring with overlap,
/// a wait for data, noise of 0.1 to 8 %, tails dropped or kept, three to five digits, rounded or cut.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "table/table.h"

namespace paceline::check::sound {

using table::Column;
using table::Row;
using table::Table;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  double between(double low, double high) { return std::uniform_real_distribution<>(low, high)(engine_); }
  double log_between(double low, double high) { return std::exp(between(std::log(low), std::log(high))); }
  int whole(int low, int high) { return std::uniform_int_distribution<>(low, high)(engine_); }
  bool chance(double p) { return between(0, 1) < p; }
  double normal(double sd) { return std::normal_distribution<>(0, sd)(engine_); }
  template <typename T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + whole(0, static_cast<int>(all.size()) - 1));
  }

 private:
  std::mt19937_64 engine_;
};

/// `value` with so many digits, rounded or cut.
inline std::string printed(double value, int digits, bool cuts = false) {
  if (value <= 0) return "0";
  const int decimals = std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(value))), 0, 12);
  const double unit = std::pow(10.0, -decimals);
  return fmt::format("{:.{}f}", cuts ? std::floor(value / unit * (1 + 1e-12)) * unit : value, decimals);
}

/// What the rows were made of, so that a mutation can make them anew.
struct Truth {
  double time = 0, speedup = 1, efficiency = 1, compute = 0, communication = 0, busbw = 0, algbw = 0,
         steps = 0, rate = 0;
};

struct SoundTable {
  Table table;
  std::vector<Truth> truth;
  bool is_strong = false, is_of_epoch = true, has_claims = true;
  int digits = 4;
  bool cuts = false;
};

/// Accuracies that were counted, with a loss that fits.
inline void add_accuracies(Draw& draw, Table& table, bool always) {
  const double tests = draw.one_of({100.0, 10000.0, 3925.0});
  if (draw.chance(0.5) || always)
    for (auto& row : table.rows) {
      const double accuracy = std::floor(draw.between(0.3, 0.999) * tests) / tests;
      row.set("test_samples", tests);
      row.set("accuracy", fmt::format("{:.{}f}", accuracy, draw.whole(tests > 1000 ? 4 : 2, 6)));
      row.set("loss", fmt::format("{:.4f}", (1 - accuracy) * draw.between(1.6, 8) + 0.0002));
      row.set("quality_of", "test");
    }
}

inline double bytes_of(const std::string& unit) {
  return unit == "GB/s" ? 1e9 : unit == "MB/s" ? 1e6 : unit == "GiB/s" ? 1073741824.0 : 1.25e8;
}

inline SoundTable draw_table(std::uint64_t seed, bool with_everything = false) {
  Draw draw(seed);
  SoundTable sound{.table = {.where = "sound.csv"}};
  sound.is_strong = draw.chance(0.4);
  sound.is_of_epoch = draw.chance(0.6) || with_everything;
  sound.digits = draw.whole(with_everything ? 4 : 3, 5);
  sound.cuts = draw.chance(0.3);
  const auto show = [&](double value) { return printed(value, sound.digits, sound.cuts); };
  const double samples = draw.one_of({50000.0, 60000.0, 1281167.0, 45000.0, 8192.0, 12345.0});
  const double local = draw.one_of({16.0, 32.0, 64.0, 100.0, 128.0, 256.0});
  const double image_s = draw.log_between(1e-5, 1e-2), overhead = draw.between(0, 0.2) * image_s * 32;
  const double parameters = draw.one_of({11173962.0, 25557032.0, 138357544.0, 3504872.0, 61706.0});
  const double link = draw.log_between(1e8, 3e11), latency = draw.log_between(1e-6, 1e-4);
  const double overlap = draw.between(0, 1), noise = draw.log_between(0.001, 0.08);
  const bool keeps_tail = draw.chance(0.5), names_batch = draw.chance(0.85) || with_everything,
             has_parts = draw.chance(0.6) || with_everything;
  const bool has_spread = draw.chance(0.5), has_rate = draw.chance(0.4) || with_everything,
             has_bandwidth = draw.chance(0.5) || with_everything;
  const bool names_baseline = draw.chance(0.3), of_worker = draw.chance(0.2),
             has_steps = draw.chance(0.3) || with_everything;
  const bool one_source = draw.chance(0.1) && !with_everything;
  const std::string bandwidth_is = draw.one_of({"algbw", "busbw", "sent"});
  const std::string unit = draw.one_of({"GB/s", "MB/s", "GiB/s", "Gbit/s"});
  const double unit_bytes = bytes_of(unit);
  const double source_rate = 0.8 / image_s;
  std::vector<int> numbers{draw.one_of({1, 1, 1, 2})};
  for (int n = numbers.front() * 2, all = draw.whole(1, 4); all > 0; --all, n *= 2) numbers.push_back(n);
  double time0 = 0, images0 = 0;
  for (const int n : numbers) {
    const double b = sound.is_strong ? std::max(1.0, std::floor(local * 8 / n)) : local, all = b * n;
    const double steps = keeps_tail ? std::ceil(samples / all) : std::max(1.0, std::floor(samples / all));
    const double compute_step = overhead + image_s * b;
    const double transfer = n > 1 ? 2 * (n - 1) * latency + 2.0 * (n - 1) / n * parameters * 4 / link : 0;
    const double exposed = std::max(transfer * (1 - overlap), transfer - compute_step * 0.6);
    double step = compute_step + exposed;
    double wait = one_source ? std::max(0.0, all / source_rate - step) : 0;
    step = (step + wait) * std::exp(draw.normal(noise));
    const double factor = step / (compute_step + exposed + wait);
    const double times = sound.is_of_epoch ? steps : 1;
    Truth truth{.time = step * times,
                .compute = compute_step * factor * times,
                .communication = exposed * factor * times,
                .steps = steps};
    if (time0 == 0) {
      time0 = truth.time;
      images0 = all;
    }
    truth.speedup = sound.is_of_epoch ? time0 / truth.time : (all / truth.time) / (images0 / time0);
    truth.efficiency = truth.speedup / (static_cast<double>(n) / numbers.front());
    truth.rate = (sound.is_of_epoch ? (keeps_tail ? samples : all * steps) : all) / truth.time;
    Row row;
    row.line = sound.table.rows.size() + 2;
    row.set("run", fmt::format("n{}", n));
    row.set("workers", n);
    if (names_batch) row.set("local_batch", b);
    if (names_batch && draw.chance(0.3)) row.set("global_batch", all);
    if (names_batch || has_rate) row.set("train_samples", samples);
    row.set("scaling", sound.is_strong ? "strong" : "weak");
    row.set("time_s", show(truth.time));
    row.set("time_of", sound.is_of_epoch ? "epoch" : "step");
    if (names_baseline && n != numbers.front()) row.set("baseline", fmt::format("n{}", numbers.front()));
    if (has_spread) {
      row.set("spread_s", printed(truth.time * noise, 2));
      row.set("spread_is", "sd");
      row.set("repeats", draw.whole(1, 10));
      row.set("statistic", "mean");
    }
    if (n != numbers.front()) {
      row.set("claimed_speedup", show(truth.speedup));
      row.set("claimed_efficiency", show(truth.efficiency));
    }
    if (has_parts) {
      row.set("compute_s", show(truth.compute));
      row.set("communication_s", show(truth.communication));
      row.set("communication_is", "exposed");
      if (wait > 0) row.set("data_wait_s", show(wait * factor * times));
    }
    if (has_rate && names_batch) {
      row.set("rate_per_s", show(of_worker ? truth.rate / n : truth.rate));
      row.set("rate_of", of_worker ? "worker" : "all");
    }
    if (has_steps && names_batch) row.set("steps", steps);
    if (has_bandwidth && has_parts && n > 1 && names_batch && truth.communication > 0) {
      const double seconds = truth.communication;
      truth.algbw = parameters * 4 * times / seconds;
      truth.busbw = truth.algbw * 2 * (n - 1) / n;
      row.set("parameters", fmt::format("{:.0f}", parameters));
      row.set("element_bytes", 4);
      row.set("algorithm", "ring");
      row.set("claimed_bandwidth", show((bandwidth_is == "algbw" ? truth.algbw : truth.busbw) / unit_bytes));
      row.set("bandwidth_unit", unit);
      row.set("bandwidth_is", bandwidth_is);
    }
    sound.table.rows.push_back(row);
    sound.truth.push_back(truth);
  }
  add_accuracies(draw, sound.table, with_everything);
  return sound;
}

}  // namespace paceline::check::sound
