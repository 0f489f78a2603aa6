#pragma once

/// Trainings of a search in the order of their validation figures: by this order a search drops and chooses,
/// and by the same its report names the best.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/record.h"

namespace paceline::measure {

/// A training's best figure on the validation part.
struct ValidationFigure {
  double accuracy = 0, loss = 0;
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t updates = 0;
};
/// Within the first `epochs` of the training; none where nothing was validated. Of equal accuracies the lower
/// loss, then the earlier epoch.
[[nodiscard]] std::optional<ValidationFigure> best_validated(
    const Record& record, std::int64_t epochs = std::numeric_limits<std::int64_t>::max());

/// A configuration with its seeds.
struct Candidate {
  std::string name;                    ///< Record::variant
  std::vector<const Record*> records;  ///< of each seed the longest, in the order of the records
  /// How far it was trained, in epochs: the fewest of a seed. One that was stopped early came to its end: it
  /// counts as far as the longest of the others.
  std::int64_t reached = 0;
  std::vector<double> accuracies;  ///< best validated, one a seed
  double accuracy = 0, loss = 0;   ///< their means; of no use where it failed
  std::string failure;             ///< why a seed has no figure; such a candidate is behind all others
};
/// One of each variant among `records`, in their order. `epochs`: figures of the first so many only.
[[nodiscard]] std::vector<Candidate> candidates(
    std::span<const Record* const> records, std::int64_t epochs = std::numeric_limits<std::int64_t>::max());

/// Whether `a` is to be kept rather than `b`: trained for longer (it was kept before), then the higher mean
/// accuracy, then the lower mean loss.
[[nodiscard]] bool ranks_before(const Candidate& a, const Candidate& b);
/// In that order; of equals the first of the records.
void rank(std::vector<Candidate>& candidates);

/// Of a candidate's trainings the one with the best figure, of equals the first. Requires: it has not failed
[[nodiscard]] const Record& best_record(const Candidate& candidate);

}  // namespace paceline::measure
