#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "analysis/collectives.h"
#include "analysis/link_fit.h"
#include "base/error.h"
#include "base/topology.h"
#include "cli/backend.h"
#include "cli/commands/commands.h"
#include "cli/new_directory.h"
#include "cli/reports.h"
#include "cli/screen.h"
#include "cli/session.h"
#include "comm/probe.h"
#include "measure/environment.h"
#include "measure/record.h"
#include "measure/statistics.h"
#include "train/run_ranks.h"

namespace paceline::cli {
namespace {

/// Small messages are over in microseconds and scatter: they are repeated more often.
int repeats_of(std::size_t bytes, int asked) { return bytes <= 65536 ? 5 * asked : asked; }

/// What one process's ranks share while they measure.
struct Bench {
  const Settings& settings;
  const base::CorePlan& cores;
  int first_core = 0;  ///< the plan's entry for this process's first rank
  Screen* screen = nullptr;
  measure::Record& record;
};

std::string rate(const std::optional<measure::Estimate>& gb_per_s) {
  return gb_per_s ? fmt::format("{:.3f}", gb_per_s->median) : "-";
}

std::string row_of(const measure::CollectiveRecord& one, int ranks) {
  const auto figures = analysis::figures(one, ranks);
  return fmt::format("{:<14} {:<3} {:>11} {:>10.1f} {:>10.1f} {:>10.1f} {:>8} {:>8}  {}", one.collective,
                     one.in_place ? "in" : "out", one.bytes, 1e6 * measure::quantile(one.seconds, 0),
                     1e6 * figures.seconds.median, 1e6 * measure::quantile(one.seconds, 0.95),
                     rate(figures.algbw), rate(figures.busbw), one.correct ? "yes" : "NO");
}

void measure_all(comm::Communicator& communicator, const Bench& bench) {
  const auto& options = bench.settings.comm;
  const bool speaks = communicator.rank() == 0;
  communicator.at(0, "the measuring of collectives");
  for (const auto trial : comm::kTrials) {
    const auto collective = trial.collective;
    std::vector<analysis::TimedMessage> messages;
    for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 4) {
      const auto probe =
          comm::probe(communicator, trial, bytes / sizeof(float), 3, repeats_of(bytes, options.repeats));
      if (!speaks) continue;
      measure::CollectiveRecord one{.collective = std::string(name(collective)),
                                    .in_place = trial.in_place,
                                    .bytes = static_cast<std::int64_t>(probe.bytes),
                                    .correct = probe.correct,
                                    .seconds = probe.seconds};
      messages.push_back({static_cast<double>(one.bytes), measure::estimate(one.seconds).median});
      bench.screen->say(row_of(one, communicator.size()));
      bench.record.collectives->push_back(std::move(one));
    }
    if (!speaks || communicator.size() < 2) continue;  // with one rank X is not moved: the slope is nothing's
    if (const auto fit = analysis::fit_link(messages))
      bench.record.link_fits->push_back({.collective = std::string(name(collective)),
                                         .in_place = trial.in_place,
                                         .alpha_s = fit->alpha_s,
                                         .bytes_per_s = fit->bytes_per_s,
                                         .residual = fit->residual});
  }
}

void run_ranks(const std::vector<std::unique_ptr<comm::Communicator>>& communicators, const Bench& bench) {
  train::run_ranks(communicators, [&](std::size_t rank) {
    (void)base::bind_current_thread(bench.cores.cores[static_cast<std::size_t>(bench.first_core) + rank]);
    measure_all(*communicators[rank], bench);
  });
}

std::string fit_line(const measure::LinkFitRecord& fit, const measure::Record& record) {
  const auto what = fmt::format("{} {}: latency {:.1f} us", fit.collective,
                                fit.in_place ? "in place" : "out of place", 1e6 * fit.alpha_s);
  if (!analysis::shows_bandwidth(fit, record))
    return what + ", and nearly nothing else up to the largest X: larger --sizes would show a bandwidth";
  return fmt::format("{}, bandwidth {:.3f} GB/s (t = latency + X / bandwidth, residual {:.0f} %)", what,
                     fit.bytes_per_s / 1e9, 100 * fit.residual);
}

/// As train does: what was measured is not lost to a second call.
void refuse_another_record(const std::filesystem::path& out) {
  std::error_code unreadable;
  if (std::filesystem::exists(out / "record.json", unreadable))
    base::fail(base::ErrorKind::usage,
               "--out {}: holds another run's record.json; give another --out, or move it away",
               out.string());
}

int workers_of(const Settings& settings, const train::ProcessPlacement& place) {
  const int workers =
      settings.is_given("workers") || place.processes == 1 ? settings.train.workers : place.processes;
  if (workers % place.processes != 0)
    base::fail(base::ErrorKind::usage, "--workers {} must be a multiple of the {} processes", workers,
               place.processes);
  return workers;
}

measure::Record begin_record(const Settings& settings, const train::ProcessPlacement& place,
                             const base::CorePlan& cores, const comm::Communicator& communicator) {
  measure::Record record;
  record.kind = record.id = "comm";
  record.command = settings.typed;
  record.created = measure::utc_now();
  record.environment = measure::environment();
  record.workers = communicator.size();
  record.threads_per_worker = 1;
  record.oversubscribed = cores.oversubscribed;
  record.communication.communicator = communicator.name();
  record.communication.algorithm = communicator.algorithm();
  if (place.processes > 1) {
    record.communication.processes = place.processes;
    record.communication.launcher = place.launcher;
    record.communication.library = place.library;
  }
  record.collectives.emplace();
  record.link_fits.emplace();
  record.notes.push_back(cores.note);
  return record;
}

/// What the user is told before the first row.
void introduce(Screen& screen, const measure::Record& record, int processes) {
  screen.explain(fmt::format("{} {} in {} {}, {}: {}", record.workers, record.workers == 1 ? "rank" : "ranks",
                             processes, processes == 1 ? "process" : "processes",
                             record.communication.communicator, record.communication.algorithm));
  for (const auto& note : record.notes) screen.explain(note);
  screen.explain(
      "times of the slowest rank, barrier before each; algbw = X / median, busbw = algbw times 2(N-1)/N "
      "(all_reduce), (N-1)/N (reduce_scatter, all_gather; X is the longer side), 1 (broadcast); GB = 1e9");
  screen.say(fmt::format("{:<14} {:<3} {:>11} {:>10} {:>10} {:>10} {:>8} {:>8}  correct", "collective", "",
                         "X bytes", "min us", "median us", "p95 us", "algbw", "busbw"));
}

/// What the user is told behind the last row.
void conclude(Screen& screen, const measure::Record& record) {
  if (record.workers == 1)
    screen.explain(
        "one rank alone transfers nothing: the times are those of the call, and there is no bandwidth; give "
        "--workers 2");
  for (const auto& fit : *record.link_fits) screen.explain(fit_line(fit, record));
}

bool all_correct(const measure::Record& record) {
  return std::all_of(record.collectives->begin(), record.collectives->end(),
                     [](const auto& one) { return one.correct; });
}

}  // namespace

int comm_command(const Settings& settings) {
  const train::ProcessPlacement place =
      settings.session == nullptr ? train::ProcessPlacement{} : settings.session->place();
  const int local = workers_of(settings, place) / place.processes;
  const auto backend = make_backend("cpu", settings.session, emulation_of(settings.train));
  auto communicators = backend.communicators(local, std::chrono::seconds(settings.train.deadline_s));
  const auto cores = base::plan_cores(local * place.core_sharers, 1);
  auto record = begin_record(settings, place, cores, *communicators.front());
  Bench bench{
      .settings = settings, .cores = cores, .first_core = place.core_share_index * local, .record = record};
  if (!place.is_first()) {
    run_ranks(communicators, bench);
    return 0;
  }

  const auto out = settings.train.out.empty() ? new_directory("comm") : settings.train.out;
  refuse_another_record(out);
  const OutputDirectory directory(out);
  Screen screen(settings.json);
  bench.screen = &screen;
  introduce(screen, record, place.processes);
  run_ranks(communicators, bench);
  conclude(screen, record);

  const bool correct = all_correct(record);
  record.status = correct ? "complete" : "failed";
  if (!correct) record.reason = "a collective gave a wrong result; see `correct` of each";
  const auto path = out / "record.json";
  measure::write_record(path, record);
  if (settings.json) std::printf("%s\n", measure::to_json(record).c_str());
  screen.explain(
      fmt::format("record: {}   (paceline report {} shows it as tables)", path.string(), out.string()));
  if (!correct)
    base::fail(base::ErrorKind::comm,
               "a collective gave a wrong result: every row with NO; please report it");
  return 0;
}

}  // namespace paceline::cli
