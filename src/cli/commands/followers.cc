#include "cli/commands/followers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/agreed_error.h"
#include "base/error.h"
#include "cli/commands/assign_processes.h"
#include "cli/commands/collectives.h"
#include "cluster/interrupt.h"
#include "cluster/make_backend.h"
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

/// Sends the message, and returns the processes that run the cell; none after the last cell.
std::vector<int> send(cluster::Session& session, const std::vector<study::PlannedCell>& cells,
                      CellMessage& order) {
  session.processes().order(std::as_writable_bytes(std::span(&order, 1)));
  if (order.index == kNoMore) return {};
  auto processes = processes_of_cell(cells[static_cast<std::size_t>(order.index)].options, session);
  session.processes().regroup(processes);
  return processes;
}

/// Checks that all processes have the same list of cells. Each makes it itself, and it may depend on a host's
/// memory.
void require_same_cells(const cluster::Session& session, const std::vector<study::PlannedCell>& cells) {
  const std::uint64_t mine = std::hash<std::string>()(study::agreed_on(cells));
  std::vector<std::uint64_t> all(static_cast<std::size_t>(session.place().processes));
  session.processes().all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (std::size_t process = 0; process < all.size(); ++process)
    if (all[process] != all[0])
      base::fail(
          base::ErrorKind::comm,
          "process {} on {} would run other cells than process 0: their hosts differ in memory, cores or "
          "data; give --batches and --workers as lists",
          process, session.members()[process].host);
}

}  // namespace

train::Backend backend_for(const Settings& settings, const train::Options& options) {
  cluster::Session* const session = settings.session;
  std::vector<int> processes;
  if (session != nullptr) processes = processes_of_cell(options, *session);
  if (session != nullptr && processes.empty()) processes = {0};  // the cell is only described, not run
  auto backend = cluster::make_backend(options.device, session, cluster::emulation_of(options),
                                       comm::WireFormat::fp32, processes);
  if (session != nullptr) backend.place.placement = placement_text(options, session->members());
  backend.history = settings.history;
  return backend;
}

study::Runner::Together lead(const Settings& settings, const std::vector<study::PlannedCell>& cells) {
  cluster::Session& session = *settings.session;
  require_same_cells(session, cells);
  return {.backend = [&settings](const train::Options& options) { return backend_for(settings, options); },
          .begin =
              [&session, &cells](int index, bool resumed) {
                CellMessage order{.index = index,
                                  .threads = cells[static_cast<std::size_t>(index)].options.threads,
                                  .resumed = resumed ? 1 : 0};
                (void)send(session, cells, order);
              }};
}

void dismiss(cluster::Session& session) {
  CellMessage order;
  (void)send(session, {}, order);
}

int follow(const Settings& settings, const std::vector<study::PlannedCell>& cells) {
  cluster::Session& session = *settings.session;
  require_same_cells(session, cells);
  const cluster::Interrupt interrupt([&session] { return session.silent(); });
  while (true) {
    CellMessage order;
    const auto processes = send(session, cells, order);
    if (order.index == kNoMore) return interrupt.exit_code();
    if (!std::ranges::binary_search(processes, session.place().process)) continue;
    const auto& cell = cells[static_cast<std::size_t>(order.index)];
    auto options = study::as_run(cell, settings.typed);
    options.threads = order.threads;
    if (order.resumed != 0) options.resume = "the first process's";
    try {
      const auto backend = backend_for(settings, options);
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

}  // namespace paceline::cli
