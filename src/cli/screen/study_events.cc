#include "cli/screen/study_events.h"

#include <unistd.h>

#include <algorithm>

#include "base/host_name.h"
#include "cli/commands/collectives.h"
#include "cli/options/options.h"
#include "measure/ranking.h"
#include "measure/statistics.h"
#include "measure/version.h"

namespace paceline::cli {
namespace {

using measure::Event;

const char* word(study::Begin how) {
  switch (how) {
    case study::Begin::anew:
      return "anew";
    case study::Begin::resumed:
      return "resumed";
    case study::Begin::kept:
      return "kept";
    case study::Begin::again:
      return "again";
  }
  return "";
}

/// images/s of a timed cell; empty for a training.
std::optional<double> timed_images_per_s(const measure::Record& record) {
  if (!record.epochs.empty() || record.window.wall_s <= 0) return std::nullopt;
  return static_cast<double>(record.window.samples) / record.window.wall_s;
}

/// The accuracy of a training on the test set, else on the validation set.
std::optional<double> accuracy(const measure::Record& record) {
  if (const auto test = measure::final_test_accuracy(record)) return test;
  if (const auto best = measure::best_validated(record)) return best->accuracy;
  return std::nullopt;
}

}  // namespace

StudyEvents::StudyEvents(RunLog& log, const Settings& settings, const std::vector<study::PlannedCell>& cells)
    : log_(log), settings_(settings), cells_(cells), began_(base::Clock::now()) {
  for (const auto& cell : cells) parts_[cell.kind].cells += cell.is_spare ? 0 : 1;
}

void StudyEvents::start() {
  has_begun_ = true;
  log_.write(Event("start")
                 .set("schema", measure::kEventsSchema)
                 .set("kind", command_name(settings_.command))
                 .set("command", settings_.typed)
                 .set("version", measure::version())
                 .set("host", base::host_name())
                 .set("process", static_cast<std::int64_t>(::getpid()))
                 .set("model", settings_.train.model)
                 .set("data", settings_.train.data)
                 .set("device", settings_.train.device)
                 .set("cells", number_of_cells()));
}

std::int64_t StudyEvents::number_of_cells() const {
  std::size_t planned = 0;
  for (const auto& [kind, part] : parts_) planned += part.cells;
  return static_cast<std::int64_t>(std::max(planned, seen_.size()));
}

void StudyEvents::begin(std::size_t index, study::Begin how) {
  if (!has_begun_) start();
  current_ = index;
  cell_began_ = base::Clock::now();
  const auto& cell = cells_[index];
  Event event("cell_begun");
  event.set("cell", cell.id)
      .set("kind", cell.kind)
      .set("index", static_cast<std::int64_t>(index + 1))
      .set("cells", number_of_cells())
      .set("how", word(how))
      .set("workers", cell.options.workers)
      .set("repeat", cell.repeat);
  if (cell.options.local_batch > 0) event.set("local_batch", cell.options.local_batch);
  if (cell.options.global_batch > 0) event.set("global_batch", cell.options.global_batch);
  if (!cell.variant.empty()) event.set("variant", cell.variant);
  log_.write(event);
}

void StudyEvents::done(const measure::Record& record) {
  const bool is_first = !std::exchange(seen_[record.id], true);
  const double seconds = base::seconds_since(cell_began_);
  const auto speed = timed_images_per_s(record);
  const auto reached = accuracy(record);
  const bool is_complete = record.status == "complete";
  Event event("cell_done");
  event.set("cell", record.id)
      .set("kind", record.kind)
      .set("status", record.status)
      .set("done", static_cast<std::int64_t>(seen_.size()))
      .set("cells", number_of_cells())
      .set("workers", record.workers)
      .set("threads", record.threads_per_worker)
      .set("local_batch", record.local_batch)
      .set("global_batch", record.global_batch)
      .set("repeat", record.repeat)
      .set("seconds", seconds);
  if (!record.reason.empty()) event.set("reason", record.reason);
  if (record.oversubscribed) event.set("oversubscribed", true);
  if (is_complete && speed) {
    event.set("images_per_s", speed).set("others_cores", record.window.others_cores);
    if (!record.ranks.empty()) event.set("step_s", measure::estimate(record.ranks.front().step_s).median);
  }
  if (is_complete && !speed) event.set("accuracy", reached);
  if (is_complete) event.set("busbw_gb_per_s", largest_busbw_gb_per_s(record));
  log_.write(event);

  Part& part = parts_[record.kind];
  const bool is_counted = is_first && !cells_[current_].is_spare;
  part.done += is_counted ? 1 : 0;
  part.complete += is_counted && is_complete ? 1 : 0;
  part.seconds += seconds;
  const double figure = !is_complete || record.oversubscribed ? 0 : speed ? *speed : reached.value_or(0);
  if (figure > part.best) part.best = figure, part.best_cell = record.id;
  if (!is_counted || part.done != part.cells) return;
  Event end("part_done");
  end.set("part", record.kind)
      .set("cells", static_cast<std::int64_t>(part.cells))
      .set("complete", static_cast<std::int64_t>(part.complete))
      .set("seconds", part.seconds);
  if (!part.best_cell.empty())
    end.set("best_cell", part.best_cell).set(speed ? "images_per_s" : "accuracy", part.best);
  log_.write(end);
}

void StudyEvents::end(const std::vector<measure::Record>& records) {
  if (!has_begun_) return;
  const bool stopped = std::any_of(records.begin(), records.end(),
                                   [](const auto& record) { return record.status == "interrupted"; });
  log_.write(Event("end")
                 .set("status", stopped ? "interrupted" : "complete")
                 .set("seconds", base::seconds_since(began_))
                 .set("done", static_cast<std::int64_t>(seen_.size()))
                 .set("cells", number_of_cells()));
}

std::function<void(const Event&)> StudyEvents::progress() {
  return [this](const Event& event) {
    if (event.name() == "start" || event.name() == "end") return;
    Event with_cell = event;
    log_.write(with_cell.set("cell", cells_[current_].id));
  };
}

}  // namespace paceline::cli
