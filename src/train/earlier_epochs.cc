#include "train/earlier_epochs.h"

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

std::vector<EpochRecord> earlier_epochs(const std::optional<ResumePoint>& resume) {
  if (!resume) return {};
  const auto path = resume->path.parent_path() / "record.json";
  if (!std::filesystem::exists(path)) return {};
  auto epochs = measure::read_record(path).epochs;
  std::int64_t before = 0;
  for (auto& epoch : epochs) {
    if (!epoch.steps) epoch.steps = epoch.updates - before;
    before = epoch.updates;
  }
  return epochs;
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
