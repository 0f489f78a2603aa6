#include "report/sections/curves.h"

#include <cmath>
#include <map>

#include "analysis/compare/record_times.h"
#include "measure/statistics.h"
#include "report/sections/parts.h"

namespace paceline::report {
namespace {

using analysis::Variant;
using measure::EpochRecord;
using measure::Record;

bool is_accuracy(Quantity quantity) {
  return quantity == Quantity::test_accuracy || quantity == Quantity::train_accuracy;
}

std::optional<double> value_of(const EpochRecord& epoch, Quantity quantity) {
  std::optional<double> value;
  switch (quantity) {
    case Quantity::test_accuracy:
      value = epoch.test_accuracy;
      break;
    case Quantity::train_accuracy:
      value = epoch.train_accuracy;
      break;
    case Quantity::test_loss:
      value = epoch.test_loss;
      break;
    case Quantity::train_loss:
      value = epoch.train_loss;
      break;
  }
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// For a test accuracy the table's standard error, which includes the counting error of the test images; for
/// everything else that of the seeds only.
double standard_error(const Variant& variant, Quantity quantity, const std::vector<double>& values) {
  if (quantity == Quantity::test_accuracy)
    return measure::accuracy_standard_error(values, static_cast<long>(variant.record->data.test_samples));
  return measure::standard_deviation(values) / std::sqrt(static_cast<double>(values.size()));
}

struct At {
  std::vector<double> x, y;
};

/// A single seed gets no interval, because the test set's counting error would be mistaken for a spread.
Point mean_point(const Variant& variant, Quantity quantity, const At& at) {
  const double scale = is_accuracy(quantity) ? 100 : 1;
  const double mean = measure::mean(at.y);
  Point point{.x = measure::mean(at.x), .y = scale * mean};
  if (at.y.size() < 2) return point;
  const double error = standard_error(variant, quantity, at.y);
  point.low = scale * (mean - error);
  point.high = scale * (mean + error);
  return point;
}

}  // namespace

Series curve(const Variant& variant, Over over, Quantity quantity) {
  std::map<std::int64_t, At> by_updates;
  for (const Record* record : variant.records) {
    std::vector<double> ends;
    if (over == Over::seconds) {
      ends = analysis::seconds_to_epochs(*record);
      if (ends.empty()) return {};
    }
    for (std::size_t i = 0; i < record->epochs.size(); ++i) {
      const EpochRecord& epoch = record->epochs[i];
      const auto value = value_of(epoch, quantity);
      if (!value) continue;
      At& at = by_updates[epoch.updates];
      at.x.push_back(over == Over::epochs    ? analysis::epochs_done(*record, epoch)
                     : over == Over::updates ? static_cast<double>(epoch.updates)
                                             : ends[i]);
      at.y.push_back(*value);
    }
  }
  Series series{.name = variant.name};
  for (const auto& [updates, at] : by_updates) {
    series.points.push_back(mean_point(variant, quantity, at));
    if (over == Over::seconds) series.points.back().mark = point_mark(*variant.cell);
  }
  return series;
}

}  // namespace paceline::report
