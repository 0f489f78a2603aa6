#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands/assign_processes.h"
#include "cli/commands/collectives.h"
#include "cli/commands/commands.h"
#include "cli/plan.h"
#include "cli/quiet_moment.h"
#include "cli/reports.h"
#include "cli/screen/cell_progress.h"
#include "cli/screen/screen.h"
#include "cluster/interrupt.h"
#include "cluster/make_backend.h"
#include "cluster/session.h"
#include "engine/cpu/processor_kind.h"
#include "engine/make.h"
#include "measure/environment.h"
#include "report/build.h"
#include "report/document.h"
#include "train/given/names.h"
#include "train/given/resolve.h"
#include "train/record/run_record.h"
#include "train/run.h"

namespace paceline::cli {
namespace {

constexpr std::int32_t kNoMore = -1;

/// The message of the first process before each cell.
struct CellMessage {
  std::int32_t index = kNoMore;
  std::int32_t threads = 0;  ///< as the first process divides the cores of its host
  std::int32_t resumed = 0;  ///< 1: from a checkpoint, which the first process reads for all
};

/// The processes of the session that run a cell of these options.
std::vector<int> processes_of_cell(const train::Options& options, const cluster::Session& session) {
  return processes_for(options.workers, options.placement, session.members());
}

/// Sends the message, and returns the processes that run the cell; none after the last cell. A signal that
/// asked one process to stop is then known to all, also to those without work.
std::vector<int> send(cluster::Session& session, const std::vector<study::PlannedCell>& cells,
                      CellMessage& order, cluster::Interrupt& interrupt) {
  session.processes().order(std::as_writable_bytes(std::span(&order, 1)));
  std::vector<int> processes;
  if (order.index != kNoMore)
    processes = processes_of_cell(cells[static_cast<std::size_t>(order.index)].options, session);
  const int signal = processes.empty() ? session.processes().highest(interrupt.signal())
                                       : session.processes().regroup(processes, interrupt.signal());
  if (signal != 0) interrupt.hear(signal);
  return processes;
}

/// Checks that all processes have the same list of cells. Each makes it itself, and it may depend on a host's
/// memory.
void require_same_cells(const cluster::Session& session, const std::vector<study::PlannedCell>& cells) {
  const auto all = session.gather(std::hash<std::string>()(study::agreed_on(cells)));
  for (std::size_t process = 0; process < all.size(); ++process)
    if (all[process] != all[0])
      base::fail(
          ErrorKind::comm,
          "process {} on {} would run other cells than process 0: their hosts differ in memory, cores or "
          "data; give --batches and --workers as lists",
          process, session.members()[process].host);
}

/// Tells the user what will run, before the first cell.
void introduce_cells(const Settings& settings, std::size_t cells, const std::filesystem::path& directory,
                     Screen& screen) {
  const auto name = command_name(settings.command);
  if (!settings.recipe.empty()) screen.say(settings.recipe);
  for (const auto& note : settings.notes) screen.say(note);
  if (settings.is_given("placement") && (settings.session == nullptr || settings.session->place().hosts == 1))
    screen.say("--placement: all processes are on one node, so packed and spread are the same");
  screen.say("{}: {}; records go to {}/records, and a stopped {} goes on from there", name,
             base::counted(cells, "cell"), directory.string(), name);
  const bool has_sizes_of_quick = !settings.is_given("model") && !settings.is_given("data") &&
                                  !settings.is_given("batches") && !settings.is_given("repeats");
  if (settings.study.quick && has_sizes_of_quick)
    screen.say(
        "it takes one to three minutes on two cores, and at most a minute more where other programs disturb it");
  if (const auto watch = watch_line(directory); !watch.empty()) screen.say(watch);
}

/// Fails if no cell gave a figure, with the reason of a cell that failed, else of one that could not be run.
void require_a_figure(const std::vector<measure::Record>& records) {
  const auto with = [&](const char* status) {
    return std::ranges::find(records, status, &measure::Record::status);
  };
  if (with("complete") != records.end()) return;
  if (const auto failed = with("failed"); failed != records.end())
    base::fail(ErrorKind::device, "every cell failed; the first: {}", failed->reason);
  base::fail(ErrorKind::usage, "no cell can be run; the first: {}", records.front().reason);
}

/// Writes the report to the screen (its beginning, with --tables all of it, with --json the records to
/// standard output instead) and to `directory`. Returns the exit code that its expectations ask for.
int show_report(const Settings& settings, const std::vector<measure::Record>& records,
                const std::filesystem::path& directory, Screen& screen) {
  const auto document = report::build(records, {.title = "",
                                                .command = settings.typed,
                                                .bounds = settings.report.bounds,
                                                .emulated = emulated_link(records),
                                                .margin = settings.report.margin});
  screen.say("");
  const auto json_of = [](const measure::Record& record) { return measure::to_json(record); };
  if (settings.json)
    std::printf("[\n%s\n]\n", base::joined(records, ",\n", json_of).c_str());
  else
    say_report(document, settings.tables, screen);
  const Settings::Report where{.records = {},
                               .html = directory / "report.html",
                               .markdown = directory / "report.md",
                               .csv = directory / "csv",
                               .json = directory / "report.json"};
  (void)write_reports(document, where);
  screen.say(" page   {}   (and report.md, report.json, csv/{})", where.html.string(),
             settings.tables || settings.json ? "" : "; --tables prints them");
  return say_expectations(document, screen);
}

/// The measured peak of the cores, to compare steps with; empty for other devices, and if it cannot be
/// measured.
std::optional<measure::PeakRecord> measured_peak(const train::Options& train) {
  constexpr std::int64_t kLeastMemory = std::int64_t{1} << 30;
  if (train.device != "cpu" || measure::available_memory_bytes() < kLeastMemory) return std::nullopt;
  const auto precision = train::precision_of(train.precision, engine::auto_precision(train.device).precision);
  const int threads = base::usable_cores();
  try {
    const auto peak = engine::cpu::measure_peak(threads, precision);
    return measure::PeakRecord{.threads = threads,
                               .precision = std::string(train::name(precision)),
                               .flops_per_s = peak.flops_per_s,
                               .bytes_per_s = peak.bytes_per_s};
  } catch (const base::Error&) {
    return std::nullopt;  // the tables then lack it
  }
}

/// Says how far a stopped study came; `not_begun` cells are left.
std::string text_of_stop(const std::vector<measure::Record>& records, std::ptrdiff_t not_begun) {
  const auto begun = std::ranges::count(records, "interrupted", &measure::Record::status) - not_begun;
  const auto all = static_cast<std::ptrdiff_t>(records.size());
  return fmt::format("stopped: {} of {} cells done and kept{}; the same command goes on",
                     all - begun - not_begun, all, begun > 0 ? ", one begun" : "");
}

/// With --only-cells: every N-th cell, so that each part has small and large ones. Spare repeats are left
/// out, since deciding about them needs all cells.
std::vector<study::PlannedCell> cells_of_part(const Settings::CellPart& part,
                                              std::vector<study::PlannedCell> cells) {
  if (part.of == 0) return cells;
  std::erase_if(cells, [](const study::PlannedCell& cell) { return cell.is_spare; });
  std::vector<study::PlannedCell> mine;
  for (auto i = static_cast<std::size_t>(part.number - 1); i < cells.size();
       i += static_cast<std::size_t>(part.of))
    mine.push_back(std::move(cells[i]));
  return mine;
}

/// The backend with which this process runs a cell of `options`, or would. `alone`: of this process without
/// the others.
train::Backend backend_for(cluster::Session& session, const train::Backend& alone,
                           const train::Options& options) {
  auto processes = processes_of_cell(options, session);
  if (processes.empty()) processes = {0};  // the cell is only described, not run
  auto backend = cluster::make_backend(options.device, &session, cluster::emulation_of(options),
                                       comm::WireFormat::fp32, processes);
  backend.place.placement = placement_text(options, session.members());
  backend.history = alone.history;
  return backend;
}

/// For the first process: the callbacks with which it leads. `interrupt` hears of a signal to another
/// process.
study::Runner::Together lead(cluster::Session& session, const train::Backend& alone,
                             const std::vector<study::PlannedCell>& cells, cluster::Interrupt& interrupt) {
  require_same_cells(session, cells);
  return {.backend = [&session,
                      &alone](const train::Options& options) { return backend_for(session, alone, options); },
          .begin =
              [&session, &cells, &interrupt](int index, bool resumed) {
                CellMessage order{.index = index,
                                  .threads = cells[static_cast<std::size_t>(index)].options.threads,
                                  .resumed = resumed ? 1 : 0};
                (void)send(session, cells, order, interrupt);
              }};
}

/// For the others: runs the cells that the first process orders, until there are no more. Returns the exit
/// code.
int follow(cluster::Session& session, const train::Backend& alone,
           const std::vector<study::PlannedCell>& cells, const std::string& command) {
  require_same_cells(session, cells);
  cluster::Interrupt interrupt([&session] { return session.silent(); });
  while (true) {
    CellMessage order;
    const auto processes = send(session, cells, order, interrupt);
    if (order.index == kNoMore) return interrupt.exit_code();
    if (!std::ranges::binary_search(processes, session.place().process)) continue;
    const auto& cell = cells[static_cast<std::size_t>(order.index)];
    auto options = study::as_run(cell, command);
    options.threads = order.threads;
    if (order.resumed != 0) options.resume = "the first process's";
    try {
      const auto backend = backend_for(session, alone, options);
      if (cell.is_of_collectives())
        (void)measure_all_reduce(options, backend, cell.collectives_s);
      else
        (void)train::run(options, backend, interrupt.token(), train::Progress{});
    } catch (const base::AgreedError&) {
      // The first process has the same error, writes it to the cell's record, and continues with the next
      // cell.
    }
  }
}

}  // namespace

int run_cells(const Settings& settings, const train::Backend& backend,
              const std::vector<study::PlannedCell>& listed, const RunList& run) {
  cluster::Session* const session = settings.session;
  const auto cells = cells_of_part(settings.cell_part,
                                   assign_processes(listed, settings.study.placements, members_of(session)));
  if (session != nullptr && !session->is_first()) return follow(*session, backend, cells, settings.typed);
  const auto directory = settings.train.out.empty()
                             ? std::filesystem::path("paceline-out") / command_name(settings.command)
                             : settings.train.out;
  if (settings.plan) return show_plan(settings, cells, backend, directory);
  if (cells.empty()) {
    std::fprintf(stderr, "paceline: part %d of %d has no cells: there are fewer cells than parts\n",
                 settings.cell_part.number, settings.cell_part.of);
    return 0;
  }
  OutputDirectory made(directory);
  Screen screen(settings.json, Waits::never);
  const auto planned =
      static_cast<std::size_t>(std::ranges::count(cells, false, &study::PlannedCell::is_spare));
  introduce_cells(settings, planned, directory, screen);

  cluster::Interrupt interrupt(session == nullptr ? std::function<bool()>()
                                                  : [session] { return session->silent(); });
  RunLog log(directory, session == nullptr ? backend.stalls : session->stalls(),
             [&] { return made.follow(); });
  const int cores = train::machine_of(session == nullptr ? backend.place : session->place()).cores;
  if ((settings.command & (kSweep | kScale | kStudy)) && settings.study.most_repeats > 0)
    say_load(cores, screen);
  StudyEvents events(log,
                     measure::start_of(command_name(settings.command), settings.typed)
                         .set("model", settings.train.model)
                         .set("data", settings.train.data)
                         .set("device", settings.train.device),
                     cells);
  const int hosts = session == nullptr ? 1 : session->place().hosts;
  CellProgress progress(cells, hosts * cores, screen);
  study::Runner runner;
  runner.backend = backend;
  if (settings.command & (kSweep | kScale | kStudy)) runner.backend.peak = measured_peak(settings.train);
  if (session != nullptr) runner.together = lead(*session, backend, cells, interrupt);
  runner.stop = interrupt.token();
  runner.interrupted = [&] { interrupt.hear(0); };
  runner.directory = directory;
  runner.command = settings.typed;
  runner.note = settings.recipe;
  runner.progress.step = [&](std::int64_t, std::int64_t, double, double images_per_s) {
    progress.step(images_per_s);
  };
  runner.progress.event = events.progress();
  runner.collectives = measure_all_reduce;
  runner.most_repeats = settings.study.most_repeats;
  QuietMoment quiet(cores, settings.study.most_repeats, screen, interrupt.token(), [session](double seconds) {
    // The others wait for this process, which only looks: without a sign it would be reported as held up.
    if (session != nullptr) session->processes().at(0, "the wait for a quiet moment");
    return measure::load_now(seconds);
  });
  runner.before_repeat = [&] { quiet.wait(); };
  runner.chosen = [&](const std::vector<std::size_t>& places, const std::string& why) {
    progress.choose(places, why);
  };
  runner.cell = [&](int index, int, const std::string&, study::Begin how) {
    progress.begin(static_cast<std::size_t>(index), how);
    events.begin(static_cast<std::size_t>(index), how);
  };
  runner.done = [&](const measure::Record& record) {
    progress.done(record);
    events.done(record);
  };
  const auto records = log.guard([&] { return run(cells, runner); });
  events.end(records);
  CellMessage no_more;
  if (session != nullptr) (void)send(*session, {}, no_more, interrupt);
  progress.finish();
  screen.clear_bar();

  const auto not_begun = std::ranges::count(records, study::kNotBegun, &measure::Record::reason);
  if (not_begun == static_cast<std::ptrdiff_t>(records.size())) {
    screen.say("stopped before the first cell was done: no report; the same command begins again");
    return interrupt.exit_code();
  }
  const int expected = show_report(settings, records, directory, screen);
  const int stopped = interrupt.exit_code();
  if (stopped != 0) screen.say(text_of_stop(records, not_begun));
  // A part may contain only cells that cannot be run; the report of the whole study then says so.
  const bool has_failed = std::ranges::count(records, "failed", &measure::Record::status) > 0;
  if (stopped == 0 && (settings.cell_part.of == 0 || has_failed)) require_a_figure(records);
  return stopped != 0 ? stopped : expected;
}

}  // namespace paceline::cli
