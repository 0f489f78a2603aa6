#include "measure/ranking.h"

#include <algorithm>

#include "measure/statistics.h"

namespace paceline::measure {
namespace {

/// For a candidate that stopped early with every seed: compare as far as the longest of the others.
constexpr std::int64_t kItsEnd = std::numeric_limits<std::int64_t>::max();

std::int64_t updates_of(const Record& record) {
  return record.epochs.empty() ? 0 : record.epochs.back().updates;
}

std::string seed_of(const Record& record) {
  const auto found = record.settings.find("seed");
  return found == record.settings.end() ? "" : found->second;
}

bool is_better_figure(const ValidationFigure& a, const ValidationFigure& b) {
  return a.accuracy != b.accuracy ? a.accuracy > b.accuracy : a.loss < b.loss;
}

/// Takes the record if it is longer than that of the same seed so far, or equally long and complete.
void take(Candidate& candidate, const Record& record) {
  const auto same = std::find_if(candidate.records.begin(), candidate.records.end(),
                                 [&](const Record* other) { return seed_of(*other) == seed_of(record); });
  if (same == candidate.records.end())
    candidate.records.push_back(&record);
  else if (updates_of(record) > updates_of(**same) ||
           (updates_of(record) == updates_of(**same) && record.status == "complete"))
    *same = &record;
}

void finish(Candidate& candidate, std::int64_t epochs) {
  std::vector<double> losses;
  candidate.reached = kItsEnd;
  for (const Record* record : candidate.records) {
    const auto figure = best_validated(*record, epochs);
    const bool has_ended = record->chosen && record->chosen->stopped_early;
    if (!has_ended)
      candidate.reached = std::min(
          candidate.reached, record->epochs.empty() ? 0 : std::min(record->epochs.back().epoch, epochs));
    if (!figure || record->status == "failed" || record->status == "skipped") {
      if (candidate.failure.empty())
        candidate.failure = record->reason.empty() ? "it has no validation figure" : record->reason;
      continue;
    }
    candidate.accuracies.push_back(figure->accuracy);
    losses.push_back(figure->loss);
  }
  if (candidate.accuracies.empty()) return;
  candidate.accuracy = mean(candidate.accuracies);
  candidate.loss = mean(losses);
}

}  // namespace

std::optional<ValidationFigure> best_validated(const Record& record, std::int64_t epochs) {
  std::optional<ValidationFigure> best;
  for (const auto& epoch : record.epochs) {
    if (epoch.epoch > epochs || !epoch.validation_accuracy || !epoch.validation_loss) continue;
    const ValidationFigure figure{.accuracy = *epoch.validation_accuracy,
                                  .loss = *epoch.validation_loss,
                                  .epoch = epoch.epoch,
                                  .updates = epoch.updates};
    if (!best || is_better_figure(figure, *best)) best = figure;
  }
  return best;
}

std::vector<Candidate> candidates(std::span<const Record* const> records, std::int64_t epochs) {
  std::vector<Candidate> found;
  for (const Record* record : records) {
    auto place = std::find_if(found.begin(), found.end(),
                              [&](const Candidate& one) { return one.name == record->variant; });
    if (place == found.end()) {
      found.emplace_back().name = record->variant;
      place = found.end() - 1;
    }
    take(*place, *record);
  }
  std::int64_t longest = 0;
  for (auto& candidate : found) {
    finish(candidate, epochs);
    if (candidate.reached != kItsEnd) longest = std::max(longest, candidate.reached);
  }
  for (auto& candidate : found)
    if (candidate.reached == kItsEnd) candidate.reached = longest;
  return found;
}

bool ranks_before(const Candidate& a, const Candidate& b) {
  if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
  if (a.reached != b.reached) return a.reached > b.reached;
  return a.accuracy != b.accuracy ? a.accuracy > b.accuracy : a.loss < b.loss;
}

void rank(std::vector<Candidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), ranks_before);
}

const Record& best_record(const Candidate& candidate) {
  const Record* best = candidate.records.front();
  for (const Record* record : candidate.records)
    if (is_better_figure(*best_validated(*record), *best_validated(*best))) best = record;
  return *best;
}

}  // namespace paceline::measure
