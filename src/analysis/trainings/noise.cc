#include "analysis/trainings/noise.h"

#include <algorithm>

#include "analysis/compare/cell.h"

namespace paceline::analysis {
namespace {

using measure::EpochRecord;
using measure::GradientSquares;

/// Whether a noise scale can be computed from them: a record may have been edited.
bool are_sound(const GradientSquares& squares) {
  return squares.small.size() == squares.large.size() && 0 < squares.small_batch &&
         squares.small_batch < squares.large_batch;
}

/// The values of some epochs, and how far each had come.
struct Measured {
  std::vector<double> small, large, epochs;
  std::int64_t steps = 0;
};

Measured measured_in(const measure::Record& record, const GradientSquares& last) {
  Measured found;
  double begin = 0;
  for (const EpochRecord& epoch : record.epochs) {
    const double end = epochs_done(record, epoch);
    const auto& squares = epoch.gradient_squares;
    if (squares && are_sound(*squares) && squares->small_batch == last.small_batch &&
        squares->large_batch == last.large_batch) {
      const auto values = static_cast<double>(squares->small.size());
      for (std::size_t i = 0; i < squares->small.size(); ++i) {
        found.small.push_back(squares->small[i]);
        found.large.push_back(squares->large[i]);
        found.epochs.push_back(begin + (end - begin) * (static_cast<double>(i) + 1) / values);
      }
      found.steps += squares->mean_of * static_cast<std::int64_t>(squares->small.size());
    }
    begin = end;
  }
  return found;
}

}  // namespace

std::optional<NoiseCourse> noise_course(const measure::Record& record) {
  const auto last = std::find_if(record.epochs.rbegin(), record.epochs.rend(), [](const EpochRecord& epoch) {
    return epoch.gradient_squares && are_sound(*epoch.gradient_squares);
  });
  if (last == record.epochs.rend()) return std::nullopt;
  const GradientSquares& batches = *last->gradient_squares;
  const Measured all = measured_in(record, batches);
  const auto scale_of = [&](std::size_t from, std::size_t count) {
    return measure::noise_scale(std::span(all.small).subspan(from, count),
                                std::span(all.large).subspan(from, count), batches.small_batch,
                                batches.large_batch);
  };
  const auto whole = scale_of(0, all.small.size());
  if (!whole) return std::nullopt;
  NoiseCourse course{.small_batch = batches.small_batch,
                     .large_batch = batches.large_batch,
                     .every = batches.every,
                     .steps = all.steps,
                     .whole = *whole,
                     .second_half = scale_of(all.small.size() / 2, all.small.size() - all.small.size() / 2),
                     .points = {}};
  constexpr std::int64_t kMostPoints = 50;
  const std::int64_t points = std::clamp<std::int64_t>(
      std::min(all.steps / kStepsOfPoint,
               static_cast<std::int64_t>(all.small.size() / measure::kFewestSquares)),
      1, kMostPoints);
  const auto values = static_cast<std::int64_t>(all.small.size());
  for (std::int64_t point = 0; point < points; ++point) {
    const auto from = static_cast<std::size_t>(values * point / points),
               to = static_cast<std::size_t>(values * (point + 1) / points);
    course.points.push_back({all.epochs[to - 1], scale_of(from, to - from).value()});
  }
  return course;
}

}  // namespace paceline::analysis
