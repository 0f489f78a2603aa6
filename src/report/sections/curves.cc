#include "report/sections/curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "analysis/compare/cell.h"
#include "measure/statistics.h"
#include "report/sections/parts.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Convergence;
using analysis::Course;
using analysis::CourseEpoch;
using analysis::Variant;

const char* held_out(const Course& course) { return course.has_validation ? "validation" : "test"; }

std::vector<TableCell> course_row(const Variant& variant, const Course& course) {
  if (course.epochs.empty()) return {words(variant.name)};
  const CourseEpoch& last = course.epochs.back();
  return {words(variant.name),
          value(last.train_loss),
          value(last.test_loss, "not evaluated"),
          value(last.validation_loss, "no validation part"),
          value(last.train_accuracy),
          value(last.test_accuracy, "not evaluated"),
          value(last.validation_accuracy, "no validation part"),
          course.gap ? value(100 * *course.gap) : missing("not evaluated"),
          course.overfitting ? words(fmt::format("{:g}", course.overfitting->from_epoch))
                             : missing("no clear rise of the held-out loss"),
          course.unsteadiness ? value(100 * *course.unsteadiness) : missing("fewer than three epochs")};
}

/// A figure of every variant over epochs.
struct CoursePlot {
  const char* id;
  const char* title;
  std::function<std::optional<double>(const CourseEpoch&)> figure;
  bool is_accuracy = false;
};

/// Variants without the figure have no series.
Plot plot_of(const Convergence& result, const std::vector<Course>& courses, const CoursePlot& shown) {
  Plot plot{.id = shown.id,
            .title = shown.title,
            .caption = "Means over seeds, as far as all of them were trained.",
            .x = {.label = "epoch"},
            .y = {.label = shown.is_accuracy ? "accuracy" : "loss", .unit = shown.is_accuracy ? "%" : ""}};
  for (std::size_t i = 0; i < result.variants.size(); ++i) {
    Series series{.name = result.variants[i].name};
    for (const CourseEpoch& epoch : courses[i].epochs)
      if (const auto y = shown.figure(epoch))
        series.points.push_back({.x = epoch.epochs, .y = (shown.is_accuracy ? 100 : 1) * *y});
    if (!series.points.empty()) plot.series.push_back(std::move(series));
  }
  return plot;
}

std::vector<Course> courses_of(const Convergence& result) {
  std::vector<Course> courses;
  for (const Variant& variant : result.variants) courses.push_back(analysis::course(variant.records));
  return courses;
}

using measure::EpochRecord;
using measure::Record;

bool is_accuracy(Quantity quantity) {
  return quantity == Quantity::test_accuracy || quantity == Quantity::train_accuracy;
}

std::optional<double> value_of(const EpochRecord& epoch, Quantity quantity) {
  const std::optional<double> values[] = {epoch.test_accuracy, epoch.train_accuracy, epoch.test_loss,
                                          epoch.train_loss};  // in the order of Quantity
  const auto& value = values[static_cast<std::size_t>(quantity)];
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

/// What the points show: "Means over 3 seeds, with one standard error to either side."
std::string text_about_seeds(const std::vector<Variant>& variants) {
  const auto [fewest, most] = std::ranges::minmax_element(variants, {}, &Variant::seeds);
  if (most->seeds == 1) return "One seed: no interval, another seed may lie elsewhere.";
  if (fewest->seeds == most->seeds)
    return fmt::format("Means over {} seeds, with one standard error to either side.", most->seeds);
  std::vector<std::string> each;
  for (const Variant& variant : variants)
    each.push_back(fmt::format("{}: {}", variant.name, counted(variant.seeds, "seed")));
  return fmt::format("Means over seeds, with one standard error to either side; one seed has none ({}).",
                     fmt::join(each, "; "));
}

Plot convergence_plot(const Convergence& result, bool over_updates) {
  Plot plot{
      .id = over_updates ? "converge-updates" : "converge-epochs",
      .title = over_updates ? "Test accuracy over updates" : "Test accuracy over epochs",
      .caption = fmt::format("{} {}",
                             over_updates ? "Against updates: how much of the loss is only fewer updates."
                                          : "Against epochs: the same images seen.",
                             text_about_seeds(result.variants)),
      .x = {.label = over_updates ? "updates" : "epoch", .log = over_updates},
      .y = {.label = "test accuracy", .unit = "%"}};
  for (const Variant& variant : result.variants)
    plot.series.push_back(
        curve(variant, over_updates ? Over::updates : Over::epochs, Quantity::test_accuracy));
  return plot;
}

/// The order of two variants may depend on the axis: a larger batch that is worse at equal epochs may be
/// better at equal seconds.
Plot plot_over_seconds(const Convergence& result) {
  Plot plot{.id = "converge-seconds",
            .title = "Test accuracy over training time",
            .x = {.label = "training time", .unit = "s"},
            .y = {.label = "test accuracy", .unit = "%"}};
  const auto& first = result.variants[result.baseline.value_or(0)];
  std::vector<Variant> drawn;
  std::vector<std::string> left_out;
  for (const Variant& variant : result.variants) {
    auto series = curve(variant, Over::seconds, Quantity::test_accuracy);
    const auto verdict = analysis::compare(*first.record, *variant.record, analysis::Topic::time_to_accuracy);
    if (!series.points.empty() && verdict.comparable()) {
      plot.series.push_back(std::move(series));
      drawn.push_back(variant);
      continue;
    }
    left_out.push_back(fmt::format(
        "{}: {}", variant.name,
        verdict.comparable() ? "the seconds of a part of it are not known" : verdict.refusals.front()));
  }
  if (drawn.empty()) return plot;
  plot.caption = fmt::format(
      "Against seconds of training, without evaluation and checkpoints: what is reached first on these "
      "processors. {}",
      text_about_seeds(drawn));
  if (!left_out.empty()) plot.caption += fmt::format(" Left out: {}.", fmt::join(left_out, "; "));
  return plot;
}

}  // namespace

std::optional<Paragraph> text_about_overfitting(const std::string& name, const Course& course) {
  if (!course.overfitting) return std::nullopt;
  const auto& over = *course.overfitting;
  std::string text = fmt::format(
      "{} overfits from epoch {:g}: the {} loss rises from {:.3f} to {:.3f} while the training loss goes on "
      "falling, from {:.3f} to {:.3f}.",
      name, over.from_epoch, held_out(course), over.lowest_loss, over.last_loss, over.train_loss_then,
      over.train_loss_at_end);
  if (over.accuracy_then && over.accuracy_at_end) {
    const double gained = *over.accuracy_at_end - *over.accuracy_then;
    const std::string points = fmt::format("{:.1f}", 100 * std::abs(gained));
    text += points == "0.0" ? fmt::format(" Its {} accuracy is the same to 0.1 points.", held_out(course))
            : gained > 0 ? fmt::format(" Its {} accuracy still rose, by {} points.", held_out(course), points)
                         : fmt::format(" Its {} accuracy fell by {} points.", held_out(course), points);
  }
  return finding(std::move(text));
}

std::optional<std::string> text_about_steadiness(const Course& course) {
  if (!course.unsteadiness) return std::nullopt;
  return fmt::format(
      "From one epoch to the next its {} accuracy changed by {:.1f} points (mean of the last {}).",
      held_out(course), 100 * *course.unsteadiness, course.steady_over);
}

Table course_table(const Convergence& result) {
  const auto courses = courses_of(result);
  Table table{
      .id = "converge-course",
      .title = "Training, validation and test at the last epoch",
      .definition =
          "Means over seeds. Training figures are of the images as they were seen during the epoch (with "
          "--augment, changed at random) and with the weights of that moment; validation and test after "
          "it. Gap: training "
          "less validation accuracy (test, where there is no validation part). Overfits from: the epoch "
          "behind the lowest held-out loss, where that loss has then risen by more than 2 % and the "
          "training loss fell on. Change: of the held-out accuracy from one epoch to the next, mean of "
          "the last five (fewer in short trainings): how steady the end was.",
      .columns = {{.key = "variant", .label = "variant"},
                  {.key = "train_loss", .label = "train loss", .format = Format::fixed3},
                  {.key = "test_loss", .label = "test loss", .format = Format::fixed3},
                  {.key = "validation_loss", .label = "validation loss", .format = Format::fixed3},
                  {.key = "train_accuracy", .label = "train accuracy", .format = Format::percent1},
                  {.key = "test_accuracy", .label = "test accuracy", .format = Format::percent1},
                  {.key = "validation_accuracy", .label = "validation accuracy", .format = Format::percent1},
                  {.key = "gap", .label = "gap", .unit = "points", .format = Format::fixed1},
                  {.key = "overfits_from", .label = "overfits from"},
                  {.key = "change", .label = "change", .unit = "points", .format = Format::fixed1}}};
  for (std::size_t i = 0; i < courses.size(); ++i) {
    auto& row = table.rows.emplace_back(course_row(result.variants[i], courses[i]));
    while (row.size() < table.columns.size()) row.push_back(missing("its seeds have no epoch in common"));
  }
  if (std::ranges::none_of(courses, &Course::has_validation))
    for (const char* key : {"validation_loss", "validation_accuracy"}) remove_column(table, key);
  return table;
}

std::vector<Plot> course_plots(const Convergence& result) {
  const auto courses = courses_of(result);
  const CoursePlot all[] = {
      {"converge-train-loss", "Training loss over epochs", &CourseEpoch::train_loss},
      {"converge-test-loss", "Test loss over epochs", &CourseEpoch::test_loss},
      {"converge-train-accuracy", "Training accuracy over epochs", &CourseEpoch::train_accuracy, true},
      {"converge-validation-loss", "Validation loss over epochs", &CourseEpoch::validation_loss},
      {"converge-validation-accuracy", "Validation accuracy over epochs", &CourseEpoch::validation_accuracy,
       true}};
  std::vector<Plot> plots;
  for (const CoursePlot& shown : all)
    if (auto plot = plot_of(result, courses, shown); !plot.series.empty()) plots.push_back(std::move(plot));
  return plots;
}

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

std::vector<Plot> converge_plots(const Convergence& result) {
  if (result.variants.empty()) return {};
  std::vector<Plot> plots{convergence_plot(result, false), convergence_plot(result, true)};
  if (auto over_seconds = plot_over_seconds(result); !over_seconds.series.empty())
    plots.push_back(std::move(over_seconds));
  return plots;
}

}  // namespace paceline::report
