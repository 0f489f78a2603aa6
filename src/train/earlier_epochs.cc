#include "train/earlier_epochs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace paceline::train {

using measure::EpochRecord;
using measure::RestartRecord;

namespace {

/// Two parts of one epoch as one: seconds add up, the training figures are means over both.
EpochRecord joined(const EpochRecord& first, EpochRecord rest) {
  const auto a = static_cast<double>(first.steps.value()), b = static_cast<double>(rest.steps.value());
  rest.seconds += first.seconds;
  rest.train_loss = (a * first.train_loss + b * rest.train_loss) / (a + b);
  rest.train_accuracy = (a * first.train_accuracy + b * rest.train_accuracy) / (a + b);
  rest.steps = first.steps.value() + rest.steps.value();
  return rest;
}

/// How `record`'s run was lost; `from`: the update that the next run begins with.
RestartRecord loss_of(const measure::Record& record, std::int64_t from) {
  RestartRecord lost{.reason = record.reason, .workers = record.workers};
  if (record.loss) lost.detection_s = record.loss->detection_s;
  if (record.updates_done) {
    lost.lost_updates = std::max<std::int64_t>(0, *record.updates_done - from);
    lost.lost_samples = *lost.lost_updates * record.global_batch;
  }
  return lost;
}

std::string sentence(const RestartRecord& lost) {
  auto text = "the run before was lost: " + lost.reason;
  if (lost.lost_updates.value_or(0) > 0)
    text += fmt::format("; {} updates ({} samples) after its last checkpoint are done again",
                        *lost.lost_updates, *lost.lost_samples);
  return text;
}

}  // namespace

Earlier read_earlier(const Options& options, const std::optional<ResumePoint>& resume) {
  const bool anew = !resume && options.lost_at_s && !options.out.empty();
  if (!resume && !anew) return {};
  Earlier earlier;
  earlier.lost_at_s = options.lost_at_s;
  const auto path = resume ? resume->path.parent_path() / "record.json" : options.out / kLostRecord;
  if (!std::filesystem::exists(path)) {
    if (options.lost_at_s)
      earlier.restarts.push_back({.reason = "it ended without a word and without a record"});
    return earlier;
  }
  const auto record = measure::read_record(path);
  earlier.restarts = record.restarts.value_or(std::vector<RestartRecord>());
  if (resume) earlier.epochs = record.epochs;
  std::int64_t before = 0;
  for (auto& epoch : earlier.epochs) {
    if (!epoch.steps) epoch.steps = epoch.updates - before;
    before = epoch.updates;
  }
  const bool without_a_word = record.status == "interrupted" && record.reason == kNoLastWord;
  if (record.status != "failed" && !without_a_word) return earlier;
  const auto lost = loss_of(record, resume ? resume->counters.update : 0);
  earlier.note = sentence(lost);
  if (record.loss) earlier.lost_at_s = record.loss->known_at_s;
  if (record.loss || without_a_word || options.lost_at_s) earlier.restarts.push_back(lost);
  return earlier;
}

std::vector<EpochRecord> joined(std::vector<EpochRecord> earlier, std::vector<EpochRecord> here) {
  if (here.empty()) return earlier;
  const std::int64_t begin = here.front().updates - here.front().steps.value();
  // A record may be ahead of its checkpoint: those updates are done again.
  std::erase_if(earlier, [&](const EpochRecord& epoch) { return epoch.updates > begin; });
  if (!earlier.empty() && earlier.back().epoch == here.front().epoch) {
    if (earlier.back().updates == begin) here.front() = joined(earlier.back(), here.front());
    earlier.pop_back();
  }
  earlier.insert(earlier.end(), here.begin(), here.end());
  return earlier;
}

}  // namespace paceline::train
