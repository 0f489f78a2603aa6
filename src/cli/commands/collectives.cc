#include "cli/commands/collectives.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <utility>

#include "analysis/steps/collectives.h"
#include "analysis/steps/link_fit.h"
#include "engine/make.h"
#include "measure/environment.h"
#include "measure/statistics.h"
#include "train/record/machine.h"
#include "train/run_ranks.h"

namespace paceline::cli {
namespace {

constexpr comm::Trial kAllReduce{comm::Collective::all_reduce, true};
constexpr double kSmallestBytes = 4096, kLargestBytes = 16 << 20, kLargestOfLargeBuckets = 64 << 20;

/// The number of bytes that this process's ranks can safely allocate together.
double affordable_bytes(int local_workers) {
  constexpr double kPart = 0.25;
  return kPart * static_cast<double>(measure::available_memory_bytes()) / local_workers;
}

/// The sizes to time, the same on all ranks although their hosts may have different memory.
std::vector<std::size_t> sizes_for_all(comm::Communicator& communicator, const train::Options& options,
                                       int local_workers) {
  double most = options.bucket_mb * 1e6 > kLargestBytes ? kLargestOfLargeBuckets : kLargestBytes;
  most = std::min(most, affordable_bytes(local_workers));
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

}  // namespace

ProbeMemory::ProbeMemory(comm::Communicator& communicator, const std::string& device, int worker_on_host,
                         std::size_t bytes)
    : memory_(engine::open_memory(device, worker_on_host)),
      whole_(communicator.array(bytes / sizeof(float), *memory_)),
      apart_(memory_->allocate(bytes / sizeof(float))) {}

measure::Record begin_collectives(const train::ProcessPlacement& place, const base::CorePlan& cores,
                                  const comm::Communicator& communicator,
                                  std::vector<std::string> libraries) {
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

const measure::CollectiveRecord& add_collective(measure::Record& record, comm::Trial trial,
                                                comm::Probe probe) {
  record.collectives->push_back({.collective = std::string(name(trial.collective)),
                                 .in_place = trial.in_place,
                                 .bytes = static_cast<std::int64_t>(probe.bytes),
                                 .correct = probe.correct,
                                 .seconds = std::move(probe.seconds)});
  return record.collectives->back();
}

void add_link_fit(measure::Record& record, comm::Trial trial) {
  if (record.workers < 2) return;  // with one rank no bytes move, so a slope has no meaning
  std::vector<analysis::TimedMessage> messages;
  for (const auto& one : *record.collectives)
    if (one.collective == name(trial.collective) && one.in_place == trial.in_place)
      messages.push_back({static_cast<double>(one.bytes), measure::estimate(one.seconds).median});
  if (const auto fit = analysis::fit_link(messages))
    record.link_fits->push_back({.collective = std::string(name(trial.collective)),
                                 .in_place = trial.in_place,
                                 .alpha_s = fit->alpha_s,
                                 .bytes_per_s = fit->bytes_per_s,
                                 .residual = fit->residual});
}

void conclude_collectives(measure::Record& record) {
  const bool correct = std::all_of(record.collectives->begin(), record.collectives->end(),
                                   [](const auto& one) { return one.correct; });
  record.status = correct ? "complete" : "failed";
  if (!correct) record.reason = "a collective gave a wrong result; see `correct` of each";
}

measure::Record measure_all_reduce(const train::Options& options, const train::Backend& backend,
                                   double seconds) {
  const auto& place = backend.place;
  const int local = options.workers / place.processes;
  const auto communicators = backend.communicators(local, std::chrono::seconds(options.deadline_s));
  const auto cores = base::plan_cores(local * place.core_sharers, 1);
  auto record = begin_collectives(place, cores, *communicators.front(), backend.libraries);
  record.device = options.device;
  if (!place.placement.empty()) record.communication.placement = place.placement;
  if (place.processes > 1) record.communication.nodes = place.hosts;
  const auto numbers = train::device_numbers(backend, local);
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
  const auto largest = std::max_element(record.collectives->begin(), record.collectives->end(),
                                        [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  const auto busbw = analysis::figures(*largest, record.workers).busbw;
  return busbw ? std::optional(busbw->median) : std::nullopt;
}

}  // namespace paceline::cli
