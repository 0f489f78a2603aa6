#include "train/earlier_epochs.h"

#include <fmt/format.h>

#include <filesystem>

namespace paceline::train {

using measure::EpochRecord;

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

}  // namespace

Earlier read_earlier(const std::optional<ResumePoint>& resume) {
  if (!resume) return {};
  const auto path = resume->path.parent_path() / "record.json";
  if (!std::filesystem::exists(path)) return {};
  const auto record = measure::read_record(path);
  Earlier earlier{.epochs = record.epochs, .note = ""};
  std::int64_t before = 0;
  for (auto& epoch : earlier.epochs) {
    if (!epoch.steps) epoch.steps = epoch.updates - before;
    before = epoch.updates;
  }
  if (record.status != "failed") return earlier;
  earlier.note = "the run before was lost: " + record.reason;
  const auto again = record.updates_done.value_or(0) - resume->counters.update;
  if (again > 0)
    earlier.note += fmt::format("; {} updates ({} samples) after its last checkpoint are done again", again,
                                again * record.global_batch);
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
