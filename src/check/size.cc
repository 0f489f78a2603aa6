/// Checks batches, workers, steps and samples against each other.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/rule.h"

namespace paceline::check {
namespace {

/// All numbers of steps that E epochs of D samples can take with n workers and a local batch b. The tail may
/// be dropped or kept, for an epoch, for all epochs together or for a worker's shard; the printed number may
/// also be that of one epoch.
std::vector<double> possible_steps(double samples, double batch, double n, double epochs) {
  const double all = batch * n, shard_up = std::ceil(samples / n), shard_down = std::floor(samples / n);
  const double one[] = {std::floor(samples / all), std::ceil(samples / all), std::ceil(shard_up / batch),
                        std::floor(shard_down / batch), std::ceil(shard_down / batch)};
  std::vector<double> found{std::floor(samples * epochs / all), std::ceil(samples * epochs / all),
                            std::round(samples * epochs / all)};
  for (const double steps : one) {
    found.push_back(steps);
    found.push_back(std::round(epochs * steps));
  }
  return found;
}

/// Whether the steps fit some unstated number of epochs.
bool is_of_some_epochs(double steps, double samples, double batch, double n, bool is_run) {
  const double one[] = {std::floor(samples / (batch * n)), std::ceil(samples / (batch * n))};
  if (std::ranges::any_of(
          one, [&](double steps_of_one) { return steps_of_one > 0 && std::fmod(steps, steps_of_one) == 0; }))
    return true;
  const double epochs = std::round(steps * batch * n / samples);
  return is_run && std::abs(steps - epochs * samples / (batch * n)) < 1;
}

bool is_possible(double steps, double samples, double batch, double n, double epochs) {
  const auto found = possible_steps(samples, batch, n, epochs);
  return std::ranges::find(found, steps) != found.end();
}

void check_workers(const Study& study, Findings& findings) {
  constexpr int kMostWorkers = 4096;
  constexpr std::size_t kListed = 4;
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    const auto printed = row.value("steps"), samples = row.value("train_samples"),
               batch = row.value("local_batch");
    const auto n = workers(row);
    if (!printed || !samples || !batch || !n || *printed <= 0 || *samples <= 0 || *batch <= 0) continue;
    const double epochs = row.value("epochs").value_or(1);
    if (epochs <= 0 || is_possible(*printed, *samples, *batch, *n, epochs) ||
        is_possible(*printed, *samples, *batch * accumulation(row), *n, epochs))
      continue;
    // Beside the time of an epoch, the steps are those of an epoch; otherwise of any number of epochs.
    if (!row.knows("epochs") && row.text("time_of") != "epoch" &&
        is_of_some_epochs(*printed, *samples, *batch, *n, row.text("time_of") == "run"))
      continue;
    std::vector<double> fit;
    for (int other = 1; other <= kMostWorkers && other * *batch <= *samples * 2; ++other)
      if (is_possible(*printed, *samples, *batch, other, epochs)) fit.push_back(other);
    const double expected = std::floor(*samples / (*batch * *n)) * epochs;
    if (fit.empty()) {
      findings.add(
          Severity::warning,
          {{i}, row.text("steps"), Figure{expected, expected, std::ceil(*samples / (*batch * *n)) * epochs}},
          fmt::format(
              "{} steps are not those of {:g} epochs of {:g} images at {:g} a worker on {:g} workers ({}), nor "
              "of another number of workers.",
              row.text("steps"), epochs, *samples, *batch, *n, shown(expected)));
      continue;
    }
    std::string names;
    for (std::size_t k = 0; k < std::min(fit.size(), kListed); ++k)
      names += fmt::format("{}{:g}", k > 0 ? ", " : "", fit[k]);
    if (fit.size() > kListed) names += fmt::format(" ... {:g}", fit.back());
    findings.add(
        Severity::error, {{i}, row.text("workers"), Figure{fit.front(), fit.front(), fit.back()}},
        fmt::format(
            "{} steps of {:g} epochs over {:g} images at {:g} a worker are the work of {} worker{}, but {:g} are "
            "stated, which would take {}.",
            row.text("steps"), epochs, *samples, *batch, names,
            fit.size() == 1 && fit.front() == 1 ? "" : "s", *n, shown(expected)));
  }
}

void check_data(const Study& study, Findings& findings) {
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    const auto samples = row.value("train_samples"), batch = global_batch(row), local = local_batch(row);
    if (!samples || !batch || *samples <= 0) continue;
    const double shard = std::ceil(*samples / workers(row).value_or(1));
    const bool is_more = *batch > *samples, is_more_than_shard = local && *local > shard;
    if (!is_more && !is_more_than_shard) continue;
    const auto& printed = row.knows("local_batch")    ? row.text("local_batch")
                          : row.knows("global_batch") ? row.text("global_batch")
                                                      : row.text("batch");
    const double effective = row.knows("local_batch") ? shard : *samples;
    findings.add(
        Severity::error, {{i}, printed, Figure{effective, effective, effective}},
        fmt::format(
            "a {} batch of {} exceeds {}: every batch is the whole of it, {:g} images, and a larger one "
            "changes nothing.",
            row.knows("local_batch") ? "local" : "global", printed,
            row.knows("local_batch") && *workers(row) > 1
                ? fmt::format("the {:g} images of a worker's shard", shard)
                : fmt::format("the {:g} training images", *samples),
            effective));
  }
}

void check_product(const Study& study, Findings& findings) {
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    const auto local = row.value("local_batch"), all = row.value("global_batch");
    const auto n = workers(row);
    if (!local || !all || !n || *local <= 0) continue;
    const double product = *local * *n * accumulation(row);
    if (product == *all || *local * *n == *all) continue;
    // A global batch that is not divisible by the number of workers: some workers have one image less.
    if (std::abs(product - *all) < *n && std::ceil(*all / *n) == *local) continue;
    findings.add(Severity::error, {{i}, row.text("global_batch"), Figure{product, product, product}},
                 fmt::format("{:g} workers of local batch {:g} make a global batch of {:g}, not {}.", *n,
                             *local, product, row.text("global_batch")));
  }
}

void check_unlabelled(const Study& study, Findings& findings) {
  for (std::size_t i = 0; i < study.size(); ++i) {
    const auto& row = study.row(i);
    const auto n = workers(row);
    if (!row.knows("batch") || row.knows("local_batch") || row.knows("global_batch") || !n || *n <= 1)
      continue;
    findings.add(
        Severity::note, {{i}, row.text("batch")},
        fmt::format(
            "a batch of {} on {:g} workers can be that of each or of all: {:g} images apart a step; say "
            "local_batch or global_batch.",
            row.text("batch"), *n, (*n - 1) * row.value("batch").value_or(0)));
  }
}

constexpr Rule kSizeRules[] = {
    {"size.workers", Severity::error, "steps train_samples local_batch workers",
     "steps that are those of another number of workers", check_workers},
    {"size.data", Severity::error, "train_samples local_batch|global_batch|batch",
     "a batch of more than there is", check_data},
    {"size.product", Severity::error, "local_batch global_batch workers",
     "local and global batch that do not fit", check_product},
    {"size.unlabelled", Severity::note, "batch workers", "a batch that is neither called local nor global",
     check_unlabelled},
};

}  // namespace

std::span<const Rule> size_rules() { return kSizeRules; }

}  // namespace paceline::check
