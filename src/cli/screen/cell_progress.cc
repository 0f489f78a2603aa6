#include "cli/screen/cell_progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/compare/cell.h"
#include "analysis/compare/operating_point.h"
#include "base/text.h"
#include "base/word_of.h"
#include "cli/commands/collectives.h"
#include "measure/disturbance.h"
#include "measure/statistics.h"
#include "report/text.h"

namespace paceline::cli {
namespace {

using measure::Event;

std::string_view word(study::Begin how) {
  return base::word_of<study::Begin::again>(how, {"anew", "resumed", "kept", "again"});
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

constexpr double kSecondsBetweenBars = 0.1;
constexpr double kSecondsBetweenLines = 10;
constexpr double kSecondsWithoutEstimate = 60;  ///< if the duration is unknown
constexpr double kShareBetweenLines = 0.1;
/// A cell that takes at least this many seconds gets a permanent line.
constexpr double kLong = 60;
constexpr std::size_t kMostFailures = 3;  ///< failures of a part that are listed one by one

/// The size of a cell: "256", "2 x 32".
std::string place_of(const study::PlannedCell& cell) {
  return cell.kind == "sweep" ? fmt::format("{}", cell.local_batch())
                              : fmt::format("{} x {}", cell.options.workers, cell.local_batch());
}

/// The part that a cell belongs to: its kind, or "repeats" for a spare one.
std::string part_of(const study::PlannedCell& cell) { return cell.is_spare ? "repeats" : cell.kind; }

/// "batch 64, repeat 2", "weak 2 x 128, repeat 1", "linear scaling, seed 2".
std::string short_name(const study::PlannedCell& cell) {
  std::string name;
  if (!cell.variant.empty())
    return fmt::format("{}, seed {}{}", cell.variant, cell.repeat + 1,
                       cell.stage.empty() ? "" : ", " + cell.stage);
  if (cell.is_of_collectives())
    return fmt::format("all-reduce of {}{}", cell.options.workers,
                       cell.options.placement == train::Placement::spread ? ", spread" : "");
  if (cell.kind == "sweep")
    name = fmt::format("batch {}", cell.local_batch());
  else if (cell.scaling == "strong")
    name = fmt::format("strong {} on {}", cell.global_batch(), cell.options.workers);
  else
    name = cell.scaling == "weak" ? "weak " + place_of(cell) : place_of(cell);
  if (cell.options.placement == train::Placement::spread) name += ", spread";
  return cell.is_spare ? name : fmt::format("{}, repeat {}", name, cell.repeat + 1);
}

std::string rounded(double value) { return report::integer(std::round(value)); }

/// images/s from the median step, as in the report.
double images_per_s(const measure::Record& record) {
  if (record.ranks.empty() || record.ranks.front().step_s.empty()) return 0;
  return static_cast<double>(record.global_batch) / measure::quantile(record.ranks.front().step_s, 0.5);
}

/// The result of a training, or of a cell that took long.
std::string result_of(const measure::Record& record) {
  if (const auto accuracy = measure::final_test_accuracy(record))
    return fmt::format("test accuracy {:.2f} % after {} updates", 100 * *accuracy,
                       record.epochs.back().updates);
  if (const auto best = measure::best_validated(record))
    return fmt::format("validation accuracy {:.2f} %, loss {:.4f} after epoch {} of {}", 100 * best->accuracy,
                       best->loss, best->epoch, record.epochs.back().epoch);
  return fmt::format("{} images/s", rounded(images_per_s(record)));
}

}  // namespace

StudyEvents::StudyEvents(RunLog& log, Event start, const std::vector<study::PlannedCell>& cells)
    : log_(log), start_(std::move(start)), cells_(cells), began_(base::Clock::now()) {
  for (const auto& cell : cells) parts_[cell.kind].cells += cell.is_spare ? 0 : 1;
}

std::int64_t StudyEvents::number_of_cells() const {
  std::size_t planned = 0;
  for (const auto& [kind, part] : parts_) planned += part.cells;
  return static_cast<std::int64_t>(std::max(planned, seen_.size()));
}

void StudyEvents::begin(std::size_t index, study::Begin how) {
  if (!std::exchange(has_begun_, true)) log_.write(start_.set("cells", number_of_cells()));
  current_ = index;
  cell_began_ = base::Clock::now();
  const auto& cell = cells_[index];
  Event event("cell_begun");
  event.set("cell", cell.id)
      .set("kind", cell.kind)
      .set("index", static_cast<std::int64_t>(index + 1))
      .set("cells", number_of_cells())
      .set("how", std::string(word(how)))
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
    if (measure::stood_still(record)) event.set("paused_s", record.window.paused_s);
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
  Event event("end");
  event.set("status", study::was_stopped(records) ? "interrupted" : "complete")
      .set("seconds", base::seconds_since(began_))
      .set("done", static_cast<std::int64_t>(seen_.size()))
      .set("cells", number_of_cells());
  if (const auto best = analysis::best_cell(records))
    event.set("best_cell", best->name).set("best_images_per_s", best->images_per_s);
  log_.write(event);
}

std::function<void(const Event&)> StudyEvents::progress() {
  return [this](const Event& event) {
    if (event.name() == "start" || event.name() == "end") return;
    Event with_cell = event;
    log_.write(with_cell.set("cell", cells_[current_].id));
  };
}

CellProgress::CellProgress(const std::vector<study::PlannedCell>& cells, int cores, Screen& screen)
    : cells_(cells), screen_(screen), left_(cells, cores) {}

void CellProgress::begin(std::size_t cell, study::Begin how) {
  const study::PlannedCell& planned = cells_[cell];
  const std::string name = part_of(planned);
  if (parts_.empty() || parts_.back().name != name) {
    finish();
    Part& part = parts_.emplace_back();
    part.name = name;
    part.is_of_trainings = !planned.training.empty();
    // The cell that marks the largest batch that fits is not run.
    part.all = chosen_ > 0 ? chosen_
                           : static_cast<std::size_t>(std::count_if(
                                 cells_.begin(), cells_.end(),
                                 [&](const auto& other) { return part_of(other) == name && !other.fits; }));
    chosen_ = 0;
  }
  cell_ = cell;
  how_ = how;
  cell_began_ = base::Clock::now();
  rate_.clear();
  left_.begin(cell, how);
  if (how == study::Begin::resumed && planned.stage.empty())
    screen_.say("    {} goes on from its last checkpoint", planned.id);
  if (how == study::Begin::again)
    screen_.say(
        "    {} is trained again: it is the best now, and an earlier search here kept only the "
        "weights of another",
        planned.id);
  show();
}

/// Whether to redraw now. Checked first, since steps are timed and must not be slowed.
bool CellProgress::is_due() const {
  const double since = base::seconds_since(last_shown_);
  return since >= (screen_.is_live() ? kSecondsBetweenBars : kSecondsBetweenLines);
}

void CellProgress::step(double images_per_s) {
  if (!is_due()) return;
  const study::PlannedCell& cell = cells_[cell_];
  if (images_per_s > 0)
    rate_ = cell.training.empty()
                ? fmt::format("{} ms/step",
                              report::number(1e3 * static_cast<double>(cell.global_batch()) / images_per_s))
                : rounded(images_per_s) + " images/s";
  show();
}

void CellProgress::count(const measure::Record& record) {
  if (cells_[cell_].fits) return;
  Part& part = parts_.back();
  ++part.done;
  part.kept += how_ == study::Begin::kept ? 1 : 0;
  part.skipped += record.status == "skipped" ? 1 : 0;
  part.disturbed += !part.is_of_trainings && measure::competitors(record) > 0 ? 1 : 0;
  part.still += !part.is_of_trainings && measure::stood_still(record) ? 1 : 0;
  if (record.status == "complete" || record.status == "skipped") return;
  if (++part.failed <= kMostFailures) screen_.say("    {} {}: {}", record.id, record.status, record.reason);
}

void CellProgress::take_best(const measure::Record& record) {
  Part& part = parts_.back();
  if (record.status != "complete" || record.oversubscribed) return;
  std::string text;
  double value = 0;
  if (const auto accuracy = measure::final_test_accuracy(record)) {
    value = *accuracy;
    text = fmt::format("test accuracy {:.2f} % ({})", 100 * value, record.variant);
  } else if (const auto validated = measure::best_validated(record)) {
    value = validated->accuracy;
    text = fmt::format("validation accuracy {:.2f} % ({})", 100 * value, record.variant);
  } else if (const auto busbw = largest_busbw_gb_per_s(record)) {
    value = *busbw;
    text = fmt::format("{} GB/s busbw at {} workers", report::number(value), record.workers);
  } else {
    value = images_per_s(record);
    const std::string emulated = analysis::emulated(record);
    text = fmt::format("{} images/s at {}{}", rounded(value), place_of(cells_[cell_]),
                       emulated.empty() ? "" : ", EMULATED " + emulated);
  }
  if (value <= part.best) return;
  part.best = value;
  part.best_text = text;
}

void CellProgress::done(const measure::Record& record) {
  const double seconds = base::seconds_since(cell_began_);
  left_.end(record);
  count(record);
  take_best(record);
  if (how_ != study::Begin::kept && record.status == "complete" && seconds >= kLong)
    screen_.say("    {}: {}, {}", short_name(cells_[cell_]), result_of(record), clock_text(seconds));
  show();
}

void CellProgress::choose(const std::vector<std::size_t>& places, const std::string& why) {
  finish();
  left_.choose(places);
  chosen_ = places.size();
  screen_.say("  " + why);
}

void CellProgress::finish() {
  if (parts_.empty() || parts_.back().name.empty()) return;
  Part& part = parts_.back();
  if (part.all == 0) return part.name.clear();  // its cells belong to another part
  std::string text = fmt::format("  {:<9} {} {}", part.name, part.failed > 0 ? "✗" : "✓",
                                 base::counted(part.done, part.is_of_trainings ? "training" : "cell"));
  std::vector<std::string> apart;
  for (const auto& [cells, what] : {std::pair{part.kept, "kept from before"},
                                    {part.skipped, "not run"},
                                    {part.failed, "failed or stopped"},
                                    {part.disturbed, "disturbed by other programs"},
                                    {part.still, "stood still for a while"}})
    if (cells > 0) apart.push_back(fmt::format("{} {}", cells, what));
  if (!apart.empty()) text += fmt::format(" ({})", fmt::join(apart, ", "));
  text += "  " + report::duration(base::seconds_since(part.began));
  if (!part.best_text.empty()) text += "   best " + part.best_text;
  screen_.say(text);
  part.name.clear();  // its line was printed
}

Bar CellProgress::bar() const {
  const Part& part = parts_.back();
  return {.name = part.name,
          .done = static_cast<std::int64_t>(part.done),
          .all = static_cast<std::int64_t>(part.all),
          .doing = short_name(cells_[cell_]),
          .rate = rate_,
          .elapsed_s = base::seconds_since(began_),
          .left_s = left_.shown()};
}

void CellProgress::show() {
  if (parts_.empty() || parts_.back().name.empty() || !is_due()) return;
  if (screen_.is_live()) {
    last_shown_ = base::Clock::now();
    return screen_.draw(bar());
  }
  const auto left = left_.seconds();
  if (!left && base::seconds_since(last_shown_) < kSecondsWithoutEstimate) return;
  const double elapsed = base::seconds_since(began_);
  const double share = left ? elapsed / (elapsed + *left) : 0;
  if (left && share < last_share_ + kShareBetweenLines) return;
  last_shown_ = base::Clock::now();
  last_share_ = share;
  screen_.say(bar_line(bar()));
}

}  // namespace paceline::cli
