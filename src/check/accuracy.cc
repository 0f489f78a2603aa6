/// Rules for losses and accuracies: impossible values, differences within the noise, and comparisons in which
/// something else differs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "base/text.h"
#include "check/rule.h"

namespace paceline::check {
namespace {

using std::numbers::ln2;

void check_loss_bound(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    const auto loss = row.number("loss"), accuracy = row.number("accuracy");
    if (!loss || !accuracy) continue;
    findings.compared();
    const double highest = loss->value + 2 * loss->half_unit;
    const double errors = 1 - std::min(1.0, accuracy->value + 2 * accuracy->half_unit);
    if (highest >= 2 * errors * ln2) continue;
    const bool is_impossible = highest < errors * ln2;
    const double least = 1 - loss->value / ln2, calibrated = 1 - loss->value / (2 * ln2);
    findings.add(
        is_impossible ? Severity::error : Severity::warning,
        {{i}, accuracy->text, Figure{calibrated, std::max(0.0, least), 1}},
        is_impossible
            ? fmt::format(
                  "a mean loss of {} with an accuracy of {} is impossible: each error costs at least ln 2, so {:.4g} "
                  "errors an image cost {} or more; the loss allows accuracies from {:.4g} on.",
                  loss->text, accuracy->text, errors, shown(errors * ln2), std::max(0.0, least))
            : fmt::format(
                  "a mean loss of {} is below that of every calibrated classifier with an accuracy of {} ({}): the two "
                  "may be of different sets; a calibrated one would have an accuracy of {:.4g} or more.",
                  loss->text, accuracy->text, shown(2 * errors * ln2), calibrated));
  }
}

void check_loss_scale(const Study& study, Findings& findings) {
  constexpr double kHighestCost = 30, kHasLearnt = 0.5;
  for (const auto& [i, row] : study.rows()) {
    const auto loss = row.number("loss"), accuracy = row.number("accuracy");
    if (!loss || !accuracy || accuracy->value <= kHasLearnt) continue;
    findings.compared();
    const double bound = kHighestCost * (1 - accuracy->value) + 1;
    if (loss->value <= bound) continue;
    findings.add(
        Severity::warning, {{i}, loss->text, Figure{bound, 0, bound}},
        fmt::format(
            "a loss of {} beside an accuracy of {} would need errors that cost {:.0f} each: it is a sum and no mean, "
            "or the logits have diverged.",
            loss->text, accuracy->text, loss->value / std::max(1e-9, 1 - accuracy->value)));
  }
}

void check_count(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    const auto accuracy = row.number("accuracy");
    const auto samples = row.value("test_samples");
    if (!accuracy || !samples || *samples < 1) continue;
    const auto& of = row.text("quality_of");
    if (of.find("train") != std::string::npos || of.find("valid") != std::string::npos) continue;
    findings.compared();
    const double counted = accuracy->value * *samples;
    // A mean over seeds, or over repeats if those are meant, is a count out of that many times the images.
    const auto is_count = [&](double times) {
      const double slack = 2 * accuracy->half_unit * *samples * times + 1e-6;
      return std::floor(counted * times + slack) >= std::ceil(counted * times - slack);
    };
    if (is_count(1) || is_count(row.value("seeds").value_or(1)) || is_count(row.value("repeats").value_or(1)))
      continue;
    const double below = std::floor(counted), above = std::ceil(counted);
    const double nearest = std::round(counted) / *samples;
    findings.add(
        Severity::error, {{i}, accuracy->text, Figure{nearest, below / *samples, above / *samples}},
        fmt::format(
            "an accuracy of {} is not a whole number of {:g} test images: {:.0f} are {:.6f}, {:.0f} are "
            "{:.6f}; no single count over this test set gives it.",
            accuracy->text, *samples, below, below / *samples, above, above / *samples));
  }
}

/// Squared standard error of an accuracy: from counting images and from the seeds.
double variance_of_accuracy(const Row& row) {
  const double p = *row.value("accuracy");
  const double counted =
      row.value("test_samples").value_or(0) > 0 ? p * (1 - p) / *row.value("test_samples") : 0;
  const double sd = row.value("accuracy_sd").value_or(0);
  return counted + sd * sd / std::max(1.0, row.value("seeds").value_or(1));
}

/// What the rivals of a row have in common: as many epochs, where they are stated, of one model.
std::string kind_of_training(const Row& row) {
  return texts_of(row, {Column("quality_of"), Column("model"), Column("epochs")});
}

/// Whether the table calls the accuracy of the row the best.
bool is_called_best(const Row& row) {
  if (row.text("best") == "yes") return true;
  const auto words = base::lower_case(row.text("claim"));
  return has_any(words, {"accura"}) && has_any(words, {"best", "highest"}) && !has_any(words, {"not "});
}

/// Rows with an accuracy, all of one model on one data set.
struct Rivals {
  std::size_t count = 0;
  std::vector<std::size_t> best = {};  ///< the two with the highest, the higher first
};

std::map<std::string, Rivals> rivals_of(const Study& study) {
  std::map<std::string, Rivals> all;
  for (const auto& [i, row] : study.rows()) {
    const auto accuracy = row.value("accuracy");
    if (!accuracy) continue;
    auto& [count, best] = all[kind_of_training(row)];
    ++count;
    const auto after =
        std::ranges::find_if(best, [&](auto k) { return *study.row(k).value("accuracy") < *accuracy; });
    best.insert(after, i);
    if (best.size() > 2) best.pop_back();
  }
  return all;
}

void check_noise(const Study& study, Findings& findings) {
  constexpr double kErrors = 2;
  const auto by_kind = rivals_of(study);
  for (const auto& [i, row] : study.rows()) {
    if (!is_called_best(row) || !row.value("accuracy") || variance_of_accuracy(row) <= 0) continue;
    const auto& [count, two] = by_kind.at(kind_of_training(row));
    if (count < 2) continue;
    findings.compared();
    const std::size_t rivals = count - 1, second = two.front() == i ? two.back() : two.front();
    const auto& other = study.row(second);
    const double difference = *row.value("accuracy") - *other.value("accuracy");
    const double error = std::sqrt(variance_of_accuracy(row) + variance_of_accuracy(other));
    const bool is_chosen_on_test =
        rivals >= 3 && row.text("quality_of") == "test" && row.knows("learning_rate");
    if (difference >= kErrors * error && !is_chosen_on_test) continue;
    const double errors = difference / error;
    findings.add(
        Severity::warning,
        {{i, second},
         row.text("accuracy"),
         Figure{difference, difference - kErrors * error, difference + kErrors * error}},
        difference < kErrors * error
            ? fmt::format(
                  "called best with {} against {} of {}: the difference of {:.2g} is {:.1f} joint standard errors ({:.2g}), "
                  "which chance gives too.",
                  row.text("accuracy"), other.text("accuracy"), other.name(), difference, errors, error)
            : fmt::format(
                  "chosen among {} by its accuracy on the test set, which is then no test of it: choose on a validation "
                  "part.",
                  rivals + 1));
  }
}

std::optional<double> updates_of(const Row& row) {
  if (const auto known = row.value("updates")) return known;
  const auto samples = row.value("train_samples"), epochs = row.value("epochs"), batch = global_batch(row);
  if (samples && epochs && batch && *batch > 0) return std::floor(*samples / *batch) * *epochs;
  return row.value("steps");
}

/// Groups of rows with an accuracy of one model on one data set. In each group the first row with the
/// smallest batch comes first.
std::vector<std::vector<std::size_t>> compared_trainings(const Study& study) {
  return sorted_groups(
      study,
      [](const Row& row) {
        return row.knows("accuracy") ? texts_of(row, {"program", "model", "quality_of", "train_samples"})
                                     : "";
      },
      [](const Row& row) { return global_batch(row).value_or(1e300); });
}

/// Groups of rows with a learning rate of one model on one data set, in each of which the accuracy of a row
/// is stated or claimed. First the row with the smallest batch or the fewest workers.
std::vector<std::vector<std::size_t>> trainings_with_rates(const Study& study) {
  auto groups = sorted_groups(
      study,
      [](const Row& row) {
        return row.knows("learning_rate") ? texts_of(row, {"program", "model", "train_samples"}) : "";
      },
      [](const Row& row) {
        return std::pair(global_batch(row).value_or(1e300), workers(row).value_or(1e300));
      });
  std::erase_if(groups, [&](const std::vector<std::size_t>& rows) {
    return std::ranges::none_of(rows, [&](auto i) {
      const auto& row = study.row(i);
      return row.knows("accuracy") || has_any(base::lower_case(row.text("claim")), {"accura"});
    });
  });
  return groups;
}

void check_updates(const Study& study, Findings& findings) {
  constexpr double kApartUpdates = 1.5;
  for (const auto& rows : compared_trainings(study)) {
    const auto& first = study.row(rows.front());
    const auto of_first = updates_of(first);
    for (std::size_t k = 1; k < rows.size(); ++k) {
      const auto& row = study.row(rows[k]);
      const auto updates = updates_of(row);
      if (!updates || !of_first || *updates <= 0 || *of_first <= 0 ||
          first.text("epochs") != row.text("epochs") || !row.knows("epochs"))
        continue;
      findings.compared();
      if (std::max(*updates, *of_first) < kApartUpdates * std::min(*updates, *of_first)) continue;
      findings.add(
          Severity::warning,
          {{rows[k], rows.front()}, row.text("accuracy"), Figure{*updates, *updates, *updates}},
          fmt::format(
              "{:.0f} updates against {:.0f} of {} in as many epochs: a difference of the accuracies ({} and {}) can come "
              "from the number of updates alone.",
              *updates, *of_first, first.name(), row.text("accuracy"), first.text("accuracy")));
    }
  }
}

void check_learning_rate(const Study& study, Findings& findings) {
  constexpr double kBeyond = 5;
  // Where a row does not say how many workers it has, they may be so many.
  constexpr double kMostWorkers = 16;
  for (const auto& rows : trainings_with_rates(study)) {
    const auto& first = study.row(rows.front());
    const auto rate0 = first.value("learning_rate"), batch0 = global_batch(first);
    for (std::size_t k = 1; k < rows.size(); ++k) {
      const auto& row = study.row(rows[k]);
      const auto rate = row.value("learning_rate"), batch = global_batch(row);
      const bool has_workers = workers(row) && workers(first), is_known = (batch && batch0) || has_workers;
      const double growth = batch && batch0 ? *batch / *batch0
                            : has_workers   ? *workers(row) / *workers(first)
                                            : 1;
      if (!rate || !rate0 || *rate <= 0 || *rate0 <= 0 || growth <= 0 ||
          row.text("optimizer") != first.text("optimizer"))
        continue;
      findings.compared();
      const double changed = *rate / *rate0;
      const double least = std::min(1.0, growth),
                   most = is_known || growth > 1 ? std::max(1.0, growth) : kMostWorkers;
      if (changed <= kBeyond * most && changed >= least / kBeyond) continue;
      findings.add(
          Severity::warning,
          {{rows[k], rows.front()},
           row.text("learning_rate"),
           Figure{*rate0 * growth, *rate0 * least, *rate0 * most}},
          fmt::format(
              "the learning rate is {:.4g} times that of {} ({} against {}) while {}: the {} may come from the "
              "learning rate.",
              changed, first.name(), row.text("learning_rate"), first.text("learning_rate"),
              is_known ? fmt::format("the batch is {:g} times as large", growth)
                       : "the batches and the workers are not stated",
              row.knows("accuracy") && first.knows("accuracy") ? "difference in accuracy"
                                                               : "accuracy that is claimed"));
    }
  }
}

void check_survivors(const Study& study, Findings& findings) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (const auto& [i, row] : study.rows())
    if (row.knows("seed") && row.value("seeds")) groups[configuration(row)].push_back(i);
  for (const auto& [key, rows] : groups) {
    const double stated = *study.row(rows.front()).value("seeds");
    const auto known = static_cast<double>(
        std::ranges::count_if(rows, [&](auto i) { return study.row(i).knows("accuracy"); }));
    if (known >= stated) continue;
    findings.add(
        Severity::warning, {rows, study.row(rows.front()).text("seeds")},
        fmt::format(
            "{:g} seeds are stated, but {:g} have an accuracy: runs that failed are results too, and a mean "
            "without them is that of the survivors.",
            stated, known));
  }
}

constexpr Rule kAccuracyRules[] = {
    {"accuracy.loss-bound", Severity::error, "loss accuracy", "a loss too low for the accuracy",
     check_loss_bound, "", "a row that has both"},
    {"accuracy.loss-scale", Severity::warning, "loss accuracy", "a loss that is a sum", check_loss_scale, "",
     "a row that has both, with an accuracy above 0.5"},
    {"accuracy.count", Severity::error, "accuracy test_samples", "an accuracy that no count gives",
     check_count, "", "an accuracy of the test set beside its images"},
    {"accuracy.noise", Severity::warning, "accuracy best|claim test_samples|accuracy_sd",
     "a best that chance gives", check_noise, "", "a row called best beside another of as many epochs"},
    {"accuracy.updates", Severity::warning, "accuracy epochs updates|global_batch|local_batch|steps",
     "equal epochs, other updates", check_updates, "", "two trainings of one model and as many epochs"},
    {"accuracy.learning-rate", Severity::warning, "accuracy|claim learning_rate",
     "a learning rate that changed too", check_learning_rate, "", "two trainings of one model and optimizer"},
    {"accuracy.survivors", Severity::warning, "accuracy seed seeds", "failed runs left out", check_survivors},
};

}  // namespace

std::span<const Rule> accuracy_rules() { return kAccuracyRules; }

}  // namespace paceline::check
