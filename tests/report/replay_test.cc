// Studies replayed: one true model of a machine, plus what other programs take of it. The study measures,
// decides what it measures again, and the report advises; here the truth is known, so the advice can be held
// against it.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>

#include "golden/records.h"
#include "report/answers/answers.h"
#include "report/build.h"
#include "study/settle.h"

namespace paceline::report {
namespace {

using study::PlannedCell;

enum class Load { none, constant, bursts, one_long };

/// A machine of two cores and the other program on it.
class Machine {
 public:
  Machine(Load load, std::uint32_t seed) : load_(load), random_(seed) {
    std::uniform_real_distribution<double> uniform(0, 1);
    cores_ = 0.5 + uniform(random_);  // of the other program while it works
    period_s_ = 10 + 30 * uniform(random_);
    busy_part_ = 0.3 + 0.4 * uniform(random_);
    phase_s_ = period_s_ * uniform(random_);
    begin_s_ = 20 * uniform(random_);
    length_s_ = 15 + 30 * uniform(random_);
    // images/s: a step has a fixed cost and a cost per image; two workers win from some batch on.
    fixed_s_ = 0.002 + 0.02 * uniform(random_);
    per_image_s_ = 0.0003 + 0.0006 * uniform(random_);
    join_s_ = 0.001 + 0.02 * uniform(random_);
    cliff_ =
        uniform(random_) < 0.5 ? 256 : 1 << 20;  // beyond it an image costs more: the batch leaves the cache
    cliff_cost_ = 1 + 0.3 * uniform(random_);
  }

  [[nodiscard]] double true_rate(const PlannedCell& cell) const {
    const auto batch = static_cast<double>(local_batch(cell));
    const double image_s = per_image_s_ * (local_batch(cell) > cliff_ ? cliff_cost_ : 1);
    const double step =
        fixed_s_ + image_s * batch / cell.options.threads + (cell.options.workers > 1 ? join_s_ : 0);
    return batch * cell.options.workers / step;
  }
  /// The rate with the other program beside it all the time: a worker that shares a core gets a part of it,
  /// and the others wait for it.
  [[nodiscard]] double loaded_rate(const PlannedCell& cell) const {
    return true_rate(cell) / slowdown(cell, cores_);
  }

  /// Cores of others at a moment.
  [[nodiscard]] double others(double at_s) const {
    switch (load_) {
      case Load::none:
        return 0.01;
      case Load::constant:
        return cores_;
      case Load::bursts:
        return std::fmod(at_s + phase_s_, period_s_) < busy_part_ * period_s_ ? cores_ : 0.01;
      case Load::one_long:
        return at_s >= begin_s_ && at_s < begin_s_ + length_s_ ? cores_ : 0.01;
    }
    return 0;
  }

  measure::Record run(const PlannedCell& cell) {
    const double window_s = cell.options.window_seconds;
    std::normal_distribution<double> of_run(0, 0.008), of_step(0, 0.02);
    const double factor = std::exp(of_run(random_));
    now_s_ += 0.3;  // what comes before a window
    const double begin = now_s_;
    std::vector<double> steps;
    double other_core_s = 0;
    const double step = static_cast<double>(local_batch(cell) * cell.options.workers) / true_rate(cell);
    while (now_s_ < begin + window_s || steps.size() < 3) {
      const double load = others(now_s_);
      const double seconds = step * factor * std::exp(of_step(random_)) * slowdown(cell, load);
      other_core_s += load / slowdown(cell, load) * seconds;  // they wait for the cores too
      now_s_ += seconds;
      steps.push_back(seconds);
    }
    std::vector<double> jitter;
    for (const double seconds : steps) jitter.push_back(seconds / step);
    auto record = golden::make_record({.kind = cell.kind,
                                       .scaling = cell.scaling,
                                       .workers = cell.options.workers,
                                       .local_batch = local_batch(cell),
                                       .repeat = cell.repeat,
                                       .forward = step,
                                       .backward = 0,
                                       .update = 0,
                                       .data_wait = 0,
                                       .copy = 0,
                                       .other = 0,
                                       .jitter = jitter});
    record.id = cell.id;
    record.threads_per_worker = cell.options.threads;
    record.settings["threads"] = std::to_string(cell.options.threads);
    record.window.others_cores = other_core_s / (now_s_ - begin);
    return record;
  }

  /// As the program waits for a quiet moment before a repeat (cli/quiet_moment.h).
  void wait_for_quiet() {
    constexpr double kLook_s = 0.25, kMost_s = 20, kAll_s = 30;
    for (double waited = 0; !was_in_vain_; waited += kLook_s) {
      now_s_ += kLook_s;
      if (others(now_s_) < 0.2) return;
      waited_s_ += kLook_s;
      was_in_vain_ = waited >= kMost_s || waited_s_ >= kAll_s;
    }
  }

  static std::int64_t local_batch(const PlannedCell& cell) {
    return cell.options.local_batch > 0 ? cell.options.local_batch
                                        : cell.options.global_batch / cell.options.workers;
  }

 private:
  /// All threads of the run step together: the slowest sets the pace, and it shares its core.
  [[nodiscard]] static double slowdown(const PlannedCell& cell, double others) {
    const double free = 2 - cell.options.workers * cell.options.threads;  // cores that the run leaves idle
    const double shared = std::max(0.0, others - free);
    return 1 + std::min(1.0, shared);
  }

  const Load load_;
  std::mt19937 random_;
  double cores_ = 0, period_s_ = 0, busy_part_ = 0, phase_s_ = 0, begin_s_ = 0, length_s_ = 0;
  double fixed_s_ = 0, per_image_s_ = 0, join_s_ = 0, cliff_cost_ = 0;
  std::int64_t cliff_ = 0;
  double now_s_ = 0, waited_s_ = 0;
  bool was_in_vain_ = false;
};

/// The timed cells of the quick study, and their spares.
std::vector<PlannedCell> quick_cells() {
  train::Options base;
  base.threads = 1;
  base.window_steps = train::Options::kManySteps;
  base.window_seconds = measure::kKnownWindow_s;
  auto cells =
      study::scale_cells(base, {.workers = {1, 2}, .batches = {32, 128, 512}, .mode = "both", .repeats = 2});
  for (int repeat = 0; repeat < 2; ++repeat)
    for (const std::int64_t batch : {8, 32, 128, 512}) {
      PlannedCell cell{.id = fmt::format("sweep-b{}-r{}", batch, repeat), .kind = "sweep", .repeat = repeat};
      cell.options = base;
      cell.options.threads = 2;
      cell.options.workers = 1;
      cell.options.local_batch = batch;
      cells.push_back(std::move(cell));
    }
  const auto spares = study::spare_cells(cells);
  cells.insert(cells.end(), spares.begin(), spares.end());
  return cells;
}

std::vector<measure::Record> replayed(const std::vector<PlannedCell>& cells, Machine& machine) {
  std::vector<measure::Record> records;
  for (const auto& cell : cells)
    if (!cell.is_spare) records.push_back(machine.run(cell));
  while (true) {
    const auto repeats = study::choose_repeats(cells, records);
    if (repeats.chosen.empty()) return records;
    for (const auto& repeat : repeats.chosen) {
      machine.wait_for_quiet();
      records.push_back(machine.run(cells[repeat.place]));
    }
  }
}

struct Tally {
  int studies = 0, unmarked = 0, good = 0, ranks = 0, true_ranks = 0, below_a_bound = 0, without_next = 0;
  int named_load = 0;
};

bool is_unmarked(const Answer& answer) {
  return answer.certainty == Certainty::decided || answer.certainty == Certainty::tie;
}

void count_study(Load load, std::uint32_t seed, Tally& tally) {
  Machine machine(load, seed);
  const auto cells = quick_cells();
  const auto records = replayed(cells, machine);
  const auto conclusions = conclude(records);
  ASSERT_EQ(conclusions.subjects.size(), 1U);
  const Subject subject = subject_of(conclusions, conclusions.subjects.front());
  ASSERT_NE(subject.best(), nullptr);
  std::map<std::string, const PlannedCell*> by_id;
  for (const auto& cell : cells) by_id[cell.id] = &cell;
  const auto rate = [&](const analysis::Cell& cell) {
    const PlannedCell& planned = *by_id.at(cell.record().id);
    return load == Load::constant ? machine.loaded_rate(planned) : machine.true_rate(planned);
  };
  double best_rate = 0, bound = 0;
  for (const auto& cell : conclusions.cells) {
    best_rate = std::max(best_rate, rate(cell));
  }
  const auto& choice = subject.point.choice;
  // What a disturbed run of another cell reached, those that were set aside included.
  for (const auto& cell : conclusions.cells)
    if (&cell != choice.best && std::ranges::find(choice.overlap, &cell) == choice.overlap.end())
      for (const auto* records_of : {&cell.records, &cell.lost})
        for (const auto* record : *records_of)
          if (measure::disturbance_of(*record) == measure::Disturbance::disturbed)
            bound = std::max(bound, static_cast<double>(record->global_batch) /
                                        measure::quantile(analysis::step_seconds(*record), 0.5));
  const Answer best = best_answer(subject);
  ++tally.studies;
  if (is_unmarked(best)) {
    ++tally.unmarked;
    tally.good += rate(*choice.best) >= 0.95 * best_rate ? 1 : 0;
    for (const auto& cell : conclusions.cells)
      if (choice.shows_slower(cell)) {
        ++tally.ranks;
        tally.true_ranks += rate(cell) < rate(*choice.best) ? 1 : 0;
      }
  }
  tally.below_a_bound += is_unmarked(best) && best.high.value_or(*best.value) < bound ? 1 : 0;
  const Next next = next_steps(subject);
  tally.without_next += next.steps.empty() && next.not_answered.empty() && !is_unmarked(best) ? 1 : 0;
  tally.named_load += best.sentence.find("For the machine as it is") != std::string::npos ? 1 : 0;
}

Tally tally_of(Load load) {
  constexpr std::uint32_t kStudies = 50;
  Tally tally;
  for (std::uint32_t seed = 0; seed < kStudies; ++seed) count_study(load, seed, tally);
  const auto percent = [](int part, int all) { return all == 0 ? 100.0 : 100.0 * part / all; };
  std::printf(
      "unmarked %.0f %% of %d; of these within 5 %% of the best: %.0f %%; ranks true: %.1f %% of %d; load named %d\n",
      percent(tally.unmarked, tally.studies), tally.studies, percent(tally.good, tally.unmarked),
      percent(tally.true_ranks, tally.ranks), tally.ranks, tally.named_load);
  EXPECT_GE(percent(tally.good, tally.unmarked), 95);
  EXPECT_GE(percent(tally.true_ranks, tally.ranks), 95);
  EXPECT_EQ(tally.below_a_bound, 0);
  EXPECT_EQ(tally.without_next, 0);
  return tally;
}

TEST(Replay, OfAQuietMachineIsUnmarked) { EXPECT_GE(tally_of(Load::none).unmarked, 0.95 * 50); }
TEST(Replay, OfBurstsIsMostlyUnmarked) { EXPECT_GE(tally_of(Load::bursts).unmarked, 0.80 * 50); }
TEST(Replay, OfOneProgramIsOftenUnmarked) { EXPECT_GE(tally_of(Load::one_long).unmarked, 0.50 * 50); }
TEST(Replay, OfAConstantLoadNamesIt) { EXPECT_EQ(tally_of(Load::constant).named_load, 50); }

}  // namespace
}  // namespace paceline::report
