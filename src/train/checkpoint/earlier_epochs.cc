#include "train/checkpoint/earlier_epochs.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/checkpoint/kept_record.h"
#include "train/given/option_rows.h"
#include "train/given/schedule.h"

namespace paceline::train {

using measure::ChangeRecord;
using measure::EpochRecord;
using measure::RestartRecord;

namespace {

/// Joins two parts of one epoch: seconds are added, the training figures are means over both.
EpochRecord joined_epoch(const EpochRecord& first, EpochRecord rest) {
  const auto a = static_cast<double>(first.steps.value()), b = static_cast<double>(rest.steps.value());
  rest.seconds += first.seconds;
  rest.train_loss = (a * first.train_loss + b * rest.train_loss) / (a + b);
  rest.train_accuracy = (a * first.train_accuracy + b * rest.train_accuracy) / (a + b);
  rest.steps = first.steps.value() + rest.steps.value();
  return rest;
}

/// `from`: the update at which the next run begins.
void count_what_was_lost(RestartRecord& lost, std::optional<std::int64_t> updates_done, std::int64_t from,
                         std::int64_t global_batch) {
  if (!updates_done) return;
  const auto again = std::max<std::int64_t>(0, *updates_done - from);
  std::int64_t samples = 0;
  if (__builtin_mul_overflow(again, global_batch, &samples)) return;  // a damaged count
  lost.lost_updates = again;
  lost.lost_samples = samples;
}

/// For records written before reads were counted: each evaluation read the whole set.
std::int64_t test_reads_of(const measure::Record& record) {
  if (record.test_set) return record.test_set->reads;
  return record.data.test_samples *
         std::count_if(record.epochs.begin(), record.epochs.end(),
                       [](const EpochRecord& epoch) { return epoch.test_accuracy.has_value(); });
}

/// Changes made by resumes after the checkpoint are undone together with their updates; this run is compared
/// with the settings that held at the checkpoint.
std::vector<ChangeRecord> changes_of(const measure::Record& record, const Options& options,
                                     std::int64_t update) {
  auto then = record.settings;
  auto changes = record.changes.value_or(std::vector<ChangeRecord>());
  for (; !changes.empty() && changes.back().update >= update; changes.pop_back()) {
    const auto& undone = changes.back();
    if (measure::is_of_images(undone.setting)) continue;  // no setting: the checkpoint says what it had
    then.erase(undone.setting);
    if (undone.then) then[undone.setting] = *undone.then;
  }
  auto now = settings(options);
  if (options.precision == "auto") now["precision"] = then["precision"];  // a resume keeps it: no change
  for (auto& change : differences(then, now)) {
    change.update = update;
    changes.push_back(std::move(change));
  }
  return changes;
}

std::string sentence_of_losses(const RestartRecord& lost) {
  auto text = "the earlier run was lost: " + lost.reason;
  if (lost.lost_updates.value_or(0) > 0)
    text += fmt::format("; {} updates ({} samples) after its last checkpoint are done again",
                        *lost.lost_updates, *lost.lost_samples);
  return text;
}

}  // namespace

Earlier read_earlier(const Options& options, const std::optional<ResumePoint>& resume,
                     std::int64_t global_batch) {
  const bool fresh = !resume && options.lost && !options.out.empty();
  if (!resume && !fresh) return {};
  const auto folder = resume ? resume->path.parent_path() : options.out;
  const auto [record, damage] = read_kept_record(folder / (resume ? "record.json" : kLostRecord));
  Earlier earlier;
  earlier.damage = damage;
  if (record) earlier.test_reads = test_reads_of(*record);
  if (record) earlier.restarts = record->restarts.value_or(std::vector<RestartRecord>());
  if (record && resume) {
    earlier.epochs = record->epochs;
    earlier.evaluations = record->evaluations.value_or(std::vector<measure::EvaluatedUpdateRecord>());
    earlier.rollbacks = record->rollbacks.value_or(std::vector<measure::RollbackRecord>());
    earlier.changes = changes_of(*record, options, resume->standing.counters.update);
  }
  if (resume)
    earlier.changes.insert(earlier.changes.end(), resume->other_images.begin(), resume->other_images.end());
  std::int64_t before = 0;
  for (auto& epoch : earlier.epochs) {
    if (!epoch.steps) epoch.steps = epoch.updates - before;
    before = epoch.updates;
  }
  const bool told = record && record->status == "failed";
  const bool ended =
      record && !told && !(record->status == "interrupted" && record->reason == kNoReportedError);
  if (ended) return earlier;
  const auto lost_rank_0 = told ? record : read_kept_record(folder / kLostRank0).record;
  RestartRecord lost;
  if (lost_rank_0) {
    lost = {.reason = lost_rank_0->reason, .workers = lost_rank_0->workers};
    if (lost_rank_0->loss) lost.detection_s = lost_rank_0->loss->detection_s;
  } else if (options.lost) {
    lost = {.reason = options.lost->how, .detection_s = options.lost->loss.detection_s};
  } else if (record) {
    lost = {.reason = record->reason};
  } else {
    return earlier;
  }
  if (record && !lost_rank_0) lost.workers = record->workers;
  const auto done =
      lost_rank_0 && lost_rank_0->updates_done ? lost_rank_0->updates_done : counted_updates(folder);
  count_what_was_lost(lost, done, resume ? resume->standing.counters.update : 0, global_batch);
  earlier.note = sentence_of_losses(lost);
  if (lost_rank_0 && lost_rank_0->loss)
    earlier.lost_at_s = lost_rank_0->loss->known_at_s;
  else if (options.lost)
    earlier.lost_at_s = options.lost->loss.known_at_s;
  if (earlier.lost_at_s || !told) earlier.restarts.push_back(lost);
  return earlier;
}

std::vector<EpochRecord> joined(std::vector<EpochRecord> earlier, std::vector<EpochRecord> here) {
  if (here.empty()) return earlier;
  const std::int64_t begin = here.front().updates - here.front().steps.value();
  // A record may be ahead of its checkpoint; those updates are repeated.
  std::erase_if(earlier, [&](const EpochRecord& epoch) { return epoch.updates > begin; });
  if (!earlier.empty() && earlier.back().epoch == here.front().epoch) {
    if (earlier.back().updates == begin) here.front() = joined_epoch(earlier.back(), here.front());
    earlier.pop_back();
  }
  earlier.insert(earlier.end(), here.begin(), here.end());
  return earlier;
}

}  // namespace paceline::train
