#include "cli/commands/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

#include "analysis/steps/bandwidth.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands/commands.h"
#include "cli/reports.h"
#include "cli/screen/screen.h"
#include "cluster/make_backend.h"
#include "cluster/session.h"
#include "comm/probe.h"
#include "engine/cuda/nvml/facts.h"
#include "engine/make.h"
#include "measure/environment.h"
#include "measure/events.h"
#include "measure/gpu_record_fields.h"
#include "measure/statistics.h"
#include "train/record/run_events.h"
#include "train/record/run_record.h"
#include "train/run_ranks.h"

namespace paceline::cli {
namespace {

constexpr comm::Trial kAllReduce{comm::Collective::all_reduce, true};
constexpr double kSmallestBytes = 4096, kLargestBytes = 16 << 20, kLargestOfLargeBuckets = 64 << 20;

/// The sizes to time, the same on all ranks although their hosts may have different memory.
std::vector<std::size_t> sizes_for_all(comm::Communicator& communicator, const train::Options& options,
                                       int local_workers) {
  double most = options.bucket_mb * 1e6 > kLargestBytes ? kLargestOfLargeBuckets : kLargestBytes;
  constexpr double kAffordable = 0.25;  // of the free memory, for all ranks of this process
  most = std::min(most, kAffordable * static_cast<double>(measure::available_memory_bytes()) / local_workers);
  communicator.all_reduce(std::span(&most, 1), comm::Reduce::min);
  std::vector<std::size_t> sizes;
  for (double bytes = kSmallestBytes; bytes <= std::max(most, kSmallestBytes); bytes *= 4)
    sizes.push_back(static_cast<std::size_t>(bytes));
  return sizes;
}

/// Records the communicator's name, which is known for devices only after array() was called.
void name_carrier(measure::Record& record, const comm::Communicator& communicator) {
  record.communication.communicator = communicator.name();
  record.communication.algorithm = communicator.algorithm();
}

/// The buffers for timing one rank's collectives, on the device on which the rank would train.
class ProbeMemory {
 public:
  /// A collective call: decides how the device's arrays are carried.
  ///
  /// Errors   Error(device): the device, or two times `bytes` of its memory, is not available
  ProbeMemory(comm::Communicator& communicator, const std::string& device, int worker_on_host,
              std::size_t bytes)
      : memory_(engine::open_memory(device, worker_on_host)),
        whole_(communicator.array(bytes / sizeof(float), *memory_)),
        apart_(memory_->allocate(bytes / sizeof(float))) {}
  [[nodiscard]] comm::ProbeArrays arrays() const { return {whole_.array(), apart_.array()}; }

 private:
  std::shared_ptr<const base::Memory> memory_;
  base::OwnedArray whole_, apart_;
};

/// A record of kind "comm" before anything is timed.
measure::Record begin_collectives(const train::ProcessPlacement& place, const base::CorePlan& cores,
                                  const comm::Communicator& communicator,
                                  std::vector<std::string> libraries = {}) {
  measure::Record record;
  record.kind = record.id = "comm";
  record.created = measure::utc_now();
  record.environment = train::machine_of(place, std::move(libraries));
  record.workers = communicator.size();
  record.threads_per_worker = 1;
  record.oversubscribed = cores.oversubscribed;
  name_carrier(record, communicator);
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

/// Adds the measurement of one size and returns it.
const measure::CollectiveRecord& add_collective(measure::Record& record, comm::Trial trial,
                                                comm::Probe probe) {
  record.collectives->push_back({.collective = std::string(name(trial.collective)),
                                 .in_place = trial.in_place,
                                 .bytes = static_cast<std::int64_t>(probe.bytes),
                                 .correct = probe.correct,
                                 .seconds = std::move(probe.seconds)});
  return record.collectives->back();
}

/// Whether a measurement or a fit is of `trial`.
bool is_of(const auto& one, comm::Trial trial) {
  return one.collective == name(trial.collective) && one.in_place == trial.in_place;
}

/// Adds latency and bandwidth fitted to the record's sizes of `trial`, if they determine them.
void add_link_fit(measure::Record& record, comm::Trial trial) {
  if (record.workers < 2) return;  // with one rank no bytes move, so a slope has no meaning
  std::vector<analysis::TimedMessage> messages;
  for (const auto& one : *record.collectives)
    if (is_of(one, trial))
      messages.push_back({static_cast<double>(one.bytes), measure::estimate(one.seconds).median});
  if (const auto fit = analysis::fit_link(messages))
    record.link_fits->push_back({.collective = std::string(name(trial.collective)),
                                 .in_place = trial.in_place,
                                 .alpha_s = fit->alpha_s,
                                 .bytes_per_s = fit->bytes_per_s,
                                 .residual = fit->residual});
}

/// Sets status and reason, depending on whether every result was right.
void conclude_collectives(measure::Record& record) {
  const bool correct = std::ranges::all_of(*record.collectives, &measure::CollectiveRecord::correct);
  record.status = correct ? "complete" : "failed";
  if (!correct) record.reason = "a collective gave a wrong result; see `correct` of each";
}

/// Times one size for about `seconds`. All ranks call it with the same arguments.
comm::Probe timed(comm::Communicator& communicator, std::size_t bytes, double seconds,
                  const comm::ProbeArrays& arrays) {
  constexpr int kWarmup = 1, kFewest = 5;
  constexpr double kMost = 200;
  const auto begin = base::Clock::now();
  auto probe = comm::probe(communicator, kAllReduce, bytes / sizeof(float), kWarmup, kFewest, arrays);
  // Includes filling and checking; takes the slowest rank's time, so that all ranks repeat equally often.
  double each = base::seconds_since(begin) / (kWarmup + kFewest);
  communicator.all_reduce(std::span(&each, 1), comm::Reduce::max);
  const double left = std::clamp(seconds / each - kWarmup - kFewest, 0.0, kMost);
  if (left < 1) return probe;
  const auto more =
      comm::probe(communicator, kAllReduce, bytes / sizeof(float), 0, static_cast<int>(left), arrays);
  probe.seconds.insert(probe.seconds.end(), more.seconds.begin(), more.seconds.end());
  probe.correct = probe.correct && more.correct;
  return probe;
}

/// What the ranks of one process share while they measure.
struct Bench {
  const Settings::Comm& options;
  bool of_all_sizes = false;  ///< --tables: a row for each size
  const base::CorePlan& cores;
  int first_core = 0;        ///< the plan's entry for this process's first rank
  Screen* screen = nullptr;  ///< only in the first process
  RunLog* log = nullptr;
  measure::Record& record;
  const std::vector<std::unique_ptr<ProbeMemory>>& memory;  ///< of this process's ranks
  base::TimePoint began = base::Clock::now();
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

std::string head(bool of_all_sizes, int ranks) {
  if (of_all_sizes)
    return fmt::format("{:<14} {:<3} {:>11} {:>10} {:>10} {:>10} {:>8} {:>8}  correct", "collective", "",
                       "X bytes", "min us", "median us", "p95 us", "algbw", "busbw");
  return fmt::format("{:<14} {:<3} {:>10} {:>10} {:>8} {:<8}{}", "collective", "", "X bytes", "median us",
                     "busbw", " correct", ranks > 1 ? " latency us   GB/s" : "");
}

/// A collective in one line: its largest size, whether all sizes were correct, and its fit.
std::string summary_of(const measure::Record& record, comm::Trial trial) {
  const measure::CollectiveRecord* largest = nullptr;
  bool correct = true;
  for (const auto& one : *record.collectives) {
    if (!is_of(one, trial)) continue;
    largest = &one;
    correct = correct && one.correct;
  }
  const auto figures = analysis::figures(*largest, record.workers);
  const auto fit =
      std::ranges::find_if(*record.link_fits, [&](const auto& one) { return is_of(one, trial); });
  std::string fitted = record.workers > 1 ? fmt::format("{:>11} {:>6}", "-", "-") : "";
  if (fit != record.link_fits->end())
    fitted = fmt::format(
        "{:>11.1f} {:>6}", 1e6 * fit->alpha_s,
        analysis::shows_bandwidth(*fit, record) ? fmt::format("{:.2f}", fit->bytes_per_s / 1e9) : "-");
  return fmt::format("{:<14} {:<3} {:>10} {:>10.1f} {:>8} {:<8}{}", largest->collective,
                     largest->in_place ? "in" : "out", largest->bytes, 1e6 * figures.seconds.median,
                     rate(figures.busbw), correct ? " yes" : " NO", fitted);
}

measure::Event event_of(const measure::CollectiveRecord& one, int ranks) {
  const auto figures = analysis::figures(one, ranks);
  measure::Event event("collective");
  event.set("collective", one.collective)
      .set("in_place", one.in_place)
      .set("bytes", one.bytes)
      .set("seconds", figures.seconds.median)
      .set("correct", one.correct);
  if (figures.busbw) event.set("busbw_gb_per_s", figures.busbw->median);
  return event;
}

void measure_all(comm::Communicator& communicator, const comm::ProbeArrays& arrays, const Bench& bench) {
  const auto& options = bench.options;
  const bool speaks = communicator.rank() == 0, says_all = bench.of_all_sizes;
  communicator.at(0, "the measuring of collectives");
  for (const auto& trial : comm::kTrials) {
    for (std::size_t bytes = options.smallest; bytes <= options.largest; bytes *= 4) {
      // Small messages take microseconds and vary more, so they are repeated more often.
      const int repeats = bytes <= 65536 ? 5 * options.repeats : options.repeats;
      auto probe = comm::probe(communicator, trial, bytes / sizeof(float), 3, repeats, arrays);
      if (!speaks) continue;
      const auto& one = add_collective(bench.record, trial, std::move(probe));
      if (says_all) bench.screen->say(row_of(one, communicator.size()));
      bench.screen->draw({.name = "comm",
                          .done = &trial - comm::kTrials.data(),
                          .all = comm::kTrials.size(),
                          .unit = "collectives",
                          .doing = one.collective,
                          .elapsed_s = base::seconds_since(bench.began)});
      bench.log->write(event_of(one, communicator.size()));
    }
    if (!speaks) continue;
    add_link_fit(bench.record, trial);
    if (!says_all) bench.screen->say(summary_of(bench.record, trial));
  }
}

void run_ranks(const std::vector<std::unique_ptr<comm::Communicator>>& communicators, const Bench& bench) {
  train::run_ranks(communicators, [&](std::size_t rank) {
    (void)base::bind_current_thread(bench.cores.cores[static_cast<std::size_t>(bench.first_core) + rank]);
    measure_all(*communicators[rank], bench.memory[rank]->arrays(), bench);
  });
}

std::string fit_line(const measure::LinkFitRecord& fit, const measure::Record& record) {
  const auto what = fmt::format("{} {}: latency {:.1f} us", fit.collective,
                                fit.in_place ? "in place" : "out of place", 1e6 * fit.alpha_s);
  if (!analysis::shows_bandwidth(fit, record))
    return what + ", which is nearly all of t up to the largest X: larger --sizes would show a bandwidth";
  return fmt::format("{}, bandwidth {:.3f} GB/s (t = latency + X / bandwidth, residual {:.0f} %)", what,
                     fit.bytes_per_s / 1e9, 100 * fit.residual);
}

/// Refuses to overwrite the record of an earlier measurement, as `train` does.
void refuse_another_record(const std::filesystem::path& out) {
  if (base::is_there(out / "record.json"))
    base::fail(ErrorKind::usage,
               "--out {}: holds another run's record.json; give another --out, or move it away",
               out.string());
}

int workers_among(const Settings& settings, const train::ProcessPlacement& place) {
  const int workers =
      settings.is_given("workers") || place.processes == 1 ? settings.train.workers : place.processes;
  if (workers % place.processes != 0)
    base::fail(ErrorKind::usage, "--workers {} must be a multiple of the {} processes", workers,
               place.processes);
  return workers;
}

/// The bandwidth limit of the device's links, shown beside busbw.
std::string describe_link(const std::string& device) {
  const auto limit = device == "cuda-on-host" ? std::nullopt : engine::cuda::nvlink_one_way();
  if (!limit) return "one-way limit of the link between the devices: unknown";
  return fmt::format("one-way limit of a GPU's NVLinks: {:.0f} GB/s ({})", limit->bytes_per_s / 1e9,
                     limit->made_of);
}

/// For each of this process's ranks.
std::vector<std::unique_ptr<ProbeMemory>> open_memory(
    const std::vector<std::unique_ptr<comm::Communicator>>& communicators, const train::Backend& backend,
    const std::string& device, std::size_t bytes) {
  std::vector<std::unique_ptr<ProbeMemory>> memory(communicators.size());
  const auto numbers = backend.machine->device_numbers(static_cast<int>(communicators.size()));
  train::run_ranks(communicators, [&](std::size_t rank) {
    memory[rank] = std::make_unique<ProbeMemory>(*communicators[rank], device, numbers[rank], bytes);
  });
  return memory;
}

/// Adds the GPU reports of all processes. Collective.
void add_gpus_of_all(measure::Record& record, measure::GpuWatch* watch, const cluster::Session* session,
                     int local) {
  if (watch == nullptr) return;
  if (session == nullptr) return train::add_gpus(record, std::vector{watch->end(0)});
  auto mine = watch->end(session->place().process * local);
  for (auto& gpu : mine.gpus) gpu.host = session->place().host;
  train::add_gpus(record, session->gather(mine));
}

/// Prints what is measured, before the first row.
void introduce_collectives(Screen& screen, const measure::Record& record, int processes, bool of_all_sizes) {
  screen.say("{} in {}, {}: {}", base::counted(record.workers, "rank", "ranks"),
             base::counted(processes, "process", "processes"), record.communication.communicator,
             record.communication.algorithm);
  for (const auto& note : record.notes) screen.say(note);
  screen.say(
      "times of the slowest rank, barrier before each; algbw = X / median, busbw = algbw times 2(N-1)/N "
      "(all_reduce), (N-1)/N (reduce_scatter, all_gather; X is the longer side), 1 (broadcast); GB = 1e9");
  screen.say(head(of_all_sizes, record.workers));
}

void conclude(Screen& screen, const measure::Record& record, bool of_all_sizes) {
  if (record.workers == 1)
    screen.say(
        "one rank alone transfers nothing: the times are those of the call, and there is no bandwidth; give "
        "--workers 2");
  if (of_all_sizes)
    for (const auto& fit : *record.link_fits) screen.say(fit_line(fit, record));
  else if (record.workers > 1)
    screen.say(
        "latency and GB/s: of t = latency + X / bandwidth, fitted over all sizes; -: not shown by them");
}

}  // namespace

measure::Record measure_all_reduce(const train::Options& options, const train::Backend& backend,
                                   double seconds) {
  const auto& place = backend.place;
  const int local = options.workers / place.processes;
  const auto communicators = backend.machine->communicators(local, std::chrono::seconds(options.deadline_s));
  const auto cores = base::plan_cores(local * place.core_sharers, 1);
  auto record = begin_collectives(place, cores, *communicators.front(), backend.libraries);
  record.device = options.device;
  if (!place.placement.empty()) record.communication.placement = place.placement;
  if (place.processes > 1) record.communication.nodes = place.hosts;
  const auto numbers = backend.machine->device_numbers(local);
  train::run_ranks(communicators, [&](std::size_t rank) {
    auto& communicator = *communicators[rank];
    if (options.pin)
      (void)base::bind_current_thread(
          cores.cores[static_cast<std::size_t>(place.core_share_index * local) + rank]);
    communicator.at(0, "the measuring of collectives");
    const auto sizes = sizes_for_all(communicator, options, local);
    const ProbeMemory memory(communicator, options.device, numbers[rank], sizes.back());
    for (const std::size_t bytes : sizes) {
      auto probe = timed(communicator, bytes, seconds / static_cast<double>(sizes.size()), memory.arrays());
      if (communicator.rank() == 0) add_collective(record, kAllReduce, std::move(probe));
    }
  });
  name_carrier(record, *communicators.front());
  if (place.is_first()) add_link_fit(record, kAllReduce);
  conclude_collectives(record);
  return record;
}

std::optional<double> largest_busbw_gb_per_s(const measure::Record& record) {
  if (!record.collectives || record.collectives->empty()) return std::nullopt;
  const auto largest = std::ranges::max_element(*record.collectives, {}, &measure::CollectiveRecord::bytes);
  const auto busbw = analysis::figures(*largest, record.workers).busbw;
  return busbw ? std::optional(busbw->median) : std::nullopt;
}

int comm_command(const Settings& settings) {
  const train::ProcessPlacement place =
      settings.session == nullptr ? train::ProcessPlacement{} : settings.session->place();
  const int local = workers_among(settings, place) / place.processes;
  const auto& device = settings.train.device;
  const auto backend = cluster::make_backend(device, settings.session, cluster::emulation_of(settings.train));
  auto communicators = backend.machine->communicators(local, std::chrono::seconds(settings.train.deadline_s));
  const auto memory = open_memory(communicators, backend, device, settings.comm.largest);
  const auto cores = base::plan_cores(local * place.core_sharers, 1);
  const auto gpu_watch = train::watch_gpus(backend, local);
  auto record = begin_collectives(place, cores, *communicators.front());
  record.command = settings.typed;
  if (!engine::computes_on_host(device)) {
    record.device = device;
    record.notes.push_back(describe_link(device));
  }
  Bench bench{.options = settings.comm,
              .of_all_sizes = settings.tables,
              .cores = cores,
              .first_core = place.core_share_index * local,
              .record = record,
              .memory = memory};
  if (gpu_watch) gpu_watch->begin();
  if (!place.is_first()) {
    run_ranks(communicators, bench);
    add_gpus_of_all(record, gpu_watch.get(), settings.session, local);
    return 0;
  }

  const auto out = settings.train.out.empty() ? new_directory("comm") : settings.train.out;
  refuse_another_record(out);
  const OutputDirectory directory(out);
  Screen screen(settings.json, Waits::never);
  RunLog log(out, backend.stalls);
  bench.screen = &screen;
  bench.log = &log;
  introduce_collectives(screen, record, place.processes, settings.tables);
  const auto began = base::Clock::now();
  log.write(measure::start_of("comm", settings.typed).set("workers", record.workers));
  log.guard([&] {
    run_ranks(communicators, bench);
    add_gpus_of_all(record, gpu_watch.get(), settings.session, local);
  });
  screen.clear_bar();
  conclude(screen, record, settings.tables);
  conclude_collectives(record);
  log.write(train::end_event(record, base::seconds_since(began)));
  const auto path = out / "record.json";
  measure::write_record(path, record);
  if (settings.json) std::printf("%s\n", measure::to_json(record).c_str());
  screen.say("record: {}   (paceline report {} shows it as tables{})", path.string(),
             base::shell_word(out.string()), settings.tables ? "" : "; --tables prints each size");
  if (record.status != "complete")
    base::fail(ErrorKind::comm, "a collective gave a wrong result (NO in its row); please report it");
  return 0;
}

}  // namespace paceline::cli
