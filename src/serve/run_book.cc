#include "serve/run_book.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "analysis/compare/operating_point.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/word_of.h"
#include "measure/environment.h"
#include "measure/record.h"
#include "measure/record_json.h"
#include "report/text.h"

namespace paceline::serve {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 5;

bool is_run(const fs::path& folder) {
  return base::is_file(folder / measure::kEventsFile) || base::is_file(folder / "record.json") ||
         base::is_folder(folder / "records");
}

constexpr std::int64_t kLongestRecord = std::int64_t{64} << 20;

/// Whether a program of this host is writing to the run: it then holds a lock on the directory
/// (OutputDirectory).
bool is_locked(const fs::path& directory) {
  const base::Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return false;
  // A shared lock, so that two readers do not mistake each other for a run. It is released at once.
  return ::flock(opened.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string whole(std::int64_t value) { return report::integer(static_cast<double>(value)); }

}  // namespace

std::string_view name(RunState state) {
  return base::word_of<RunState::failed>(state, {"running", "complete", "interrupted", "failed"});
}

RecordFiles record_files(const fs::path& folder) {
  RecordFiles found;
  if (base::is_file(folder / "record.json")) found.paths.push_back(folder / "record.json");
  for (const auto& entry : base::entries_of(folder / "records"))
    if (entry.path().extension() == ".json") found.paths.push_back(entry.path());
  std::ranges::sort(found.paths);
  for (const auto& file : found.paths) {
    struct stat now {};
    if (::stat(file.c_str(), &now) != 0) continue;
    found.stamp += fmt::format("{} {} {} {}.{}\n", file.filename().string(), now.st_ino, now.st_size,
                               now.st_mtim.tv_sec, now.st_mtim.tv_nsec);
    found.changed_at = std::max(found.changed_at, static_cast<double>(now.st_mtim.tv_sec) +
                                                      1e-9 * static_cast<double>(now.st_mtim.tv_nsec));
  }
  return found;
}

std::vector<Run> RunBook::list() {
  std::vector<Run> runs;
  if (is_run(directory_))
    runs.push_back(read(directory_));
  else
    walk(directory_, 1, runs);
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return a.changed_at != b.changed_at ? a.changed_at > b.changed_at : a.id < b.id;
  });
  return runs;
}

void RunBook::walk(const fs::path& folder, int depth, std::vector<Run>& runs) {
  for (const auto& inner : base::entries_of(folder)) {
    std::error_code gone;
    if (!inner.is_directory(gone) || inner.is_symlink(gone)) continue;
    if (is_run(inner))
      runs.push_back(read(inner));
    else if (depth < kDeepest)
      walk(inner, depth + 1, runs);
  }
}

Run RunBook::read(const fs::path& folder) {
  Run run{.id = folder.lexically_relative(directory_).generic_string(), .path = folder};
  read_events(folder, run);
  if (!run.status.has_begun) read_records(folder, run);
  // The lock of a run on another host is not visible here. Such a run counts as running if it wrote within
  // the last minute.
  constexpr double kSilent_s = 60;
  const bool is_elsewhere = !run.status.host.empty() && run.status.host != base::host_name();
  const bool is_fresh = measure::unix_now() - run.changed_at < kSilent_s;
  if (is_locked(folder) || (!run.status.has_ended && is_elsewhere && is_fresh))
    run.state = RunState::running;
  else if (run.status.has_ended && run.status.status == "complete")
    run.state = RunState::complete;
  else if (run.status.has_ended && run.status.status == "failed")
    run.state = RunState::failed;
  return run;
}

void RunBook::read_events(const fs::path& folder, Run& run) {
  const auto file = folder / measure::kEventsFile;
  auto [at, is_new] = followed_.try_emplace(folder.string(), Followed{measure::EventTail(file), {}});
  Followed& followed = at->second;
  while (true) {
    const auto before = followed.tail.restarts();
    const auto lines = followed.tail.read();
    if (followed.tail.restarts() != before) followed.status = {};
    for (const auto& line : lines)
      if (const auto event = measure::event_from_json(line.text)) followed.status.take(*event);
    if (lines.empty()) break;
  }
  run.status = followed.status;
  run.bytes = followed.tail.offset();
  run.changed_at = followed.status.last_at;
}

/// For runs older than event logs. A training's record gives its state; for a study the cells that are not
/// complete do.
void RunBook::read_records(const fs::path& folder, Run& run) {
  auto [files, stamp, changed_at] = record_files(folder);
  run.changed_at = std::max(run.changed_at, changed_at);
  auto& status = run.status;
  auto& kept = records_[folder.string()];
  if (!stamp.empty() && stamp == kept.stamp) {
    status = kept.status;
    return;
  }
  std::vector<measure::Record> records;
  for (const auto& file : files) {
    try {
      auto record = measure::record_from_json(base::read_regular_file(file, kLongestRecord), file.string());
      measure::make_visible(record);
      status.has_begun = status.has_ended = true;
      status.kind = record.kind;
      status.model = record.model.name;
      status.data = record.data.spec;
      status.command = record.command;
      if (status.status.empty() || (status.status == "complete" && record.status == "interrupted"))
        status.status = record.status == "skipped" ? "complete" : record.status;
      if (file.filename() == "record.json") {
        status.updates = status.updates_done = record.epochs.empty() ? 0 : record.epochs.back().updates;
        status.reason = record.reason;
      } else {
        ++status.cells;
        status.cells_done += record.status == "interrupted" ? 0 : 1;
      }
      if (const auto reached = measure::final_test_accuracy(record))
        status.best_accuracy = std::max(*reached, status.best_accuracy.value_or(0));
      records.push_back(std::move(record));
    } catch (const base::Error&) {
      // `report` says what is wrong with it.
    }
  }
  if (const auto best = analysis::best_cell(records)) {
    status.best_images_per_s = best->images_per_s;
    status.best_cell = best->name;
  }
  kept = {.stamp = std::move(stamp), .status = status};
}

measure::Event status_event(const Run& run) {
  const auto& status = run.status;
  measure::Event event("status");
  event.set("state", std::string(name(run.state)))
      .set("kind", status.kind)
      .set("started_at", status.started_at)
      .set("last_at", status.last_at)
      .set("updates_done", status.updates_done)
      .set("updates", status.updates)
      .set("epoch", status.epoch)
      .set("cells_done", status.cells_done)
      .set("cells", status.cells)
      .set("cell", status.cell)
      .set("images_per_s", status.images_per_s)
      .set("loss", status.loss)
      .set("best_images_per_s", status.best_images_per_s)
      .set("best_cell", status.best_cell)
      .set("best_accuracy", status.best_accuracy);
  if (!status.reason.empty()) event.set("reason", status.reason);
  return event;
}

std::string age(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", std::max(seconds, 0.0));
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} d", seconds / 86400);
}

std::string progress_text(const measure::RunStatus& status) {
  // A complete search has dropped some cells; nothing of it is left to do.
  const bool is_over = status.status == "complete";
  if (status.cells > 0)
    return is_over || status.cells_done == status.cells
               ? fmt::format("{} cell{}", whole(status.cells_done), status.cells_done == 1 ? "" : "s")
               : fmt::format("{} of {} cells", whole(status.cells_done), whole(status.cells));
  if (status.updates == 0) return "";
  const auto updates =
      is_over || status.updates_done == status.updates
          ? fmt::format("{} updates", whole(status.updates_done))
          : fmt::format("{} of {} updates", whole(status.updates_done), whole(status.updates));
  return status.epoch > 0 ? fmt::format("epoch {}, {}", status.epoch, updates) : updates;
}

std::string best_text(const measure::RunStatus& status) {
  std::string text;
  if (status.best_images_per_s) text = report::integer(*status.best_images_per_s) + " images/s";
  if (status.best_accuracy)
    text += fmt::format("{}{:.2f} %", text.empty() ? "" : ", ", 100 * *status.best_accuracy);
  return text;
}

}  // namespace paceline::serve
