/// Checks batches, workers, steps and samples against each other, and the numbers of parameters of well-known
/// networks.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <ranges>

#include "base/text.h"
#include "check/rule.h"

namespace paceline::check {

namespace {

/// parameters = body + per_class x classes, as torchvision counts them (the CIFAR form of ResNet-18: a 3x3
/// stem).
struct KnownModel {
  std::string_view name;
  double body, per_class;
  double usual_classes = 1000;
};

constexpr KnownModel kKnownModels[] = {
    {"resnet18", 11'176'512, 513},       {"resnet34", 21'284'672, 513},
    {"resnet50", 23'508'032, 2049},      {"resnet101", 42'500'160, 2049},
    {"resnet152", 58'143'808, 2049},     {"resnet18cifar", 11'168'832, 513, 10},
    {"vgg16", 134'260'544, 4097},        {"alexnet", 57'003'840, 4097},
    {"densenet121", 6'953'856, 1025},    {"mobilenetv2", 2'223'872, 1281},
    {"efficientnetb0", 4'007'548, 1281}, {"vitb16", 85'798'656, 769},
};

std::string plain_name(std::string_view name) {
  auto plain = base::lower_case(name);
  std::erase_if(plain, [](unsigned char one) { return std::isalnum(one) == 0; });
  return plain;
}

double count_of(const KnownModel& model, double classes) { return model.body + model.per_class * classes; }

bool is_count(const table::Number& printed, double count) {
  const bool is_whole = printed.text.find_first_of(".eE") == std::string::npos;
  const double t =
      is_whole && std::fmod(printed.value, 1000) != 0 ? 0.5 : std::max(2 * printed.half_unit, 0.005 * count);
  return std::abs(printed.value - count) <= t;
}

/// The model and number of classes with the printed number of parameters; "" if there is none.
std::string whose(const table::Number& printed, double classes) {
  for (const auto& model : kKnownModels)
    for (const double number : {classes, model.usual_classes, 10.0, 100.0, 1000.0})
      if (is_count(printed, count_of(model, number)))
        return fmt::format("{} with {:g} classes", model.name, number);
  return "";
}

void check_parameters(const Study& study, Findings& findings) {
  for (const auto& [i, row] : study.rows()) {
    const auto printed = row.number("parameters");
    const auto classes = row.value("classes");
    if (!printed || !classes || !row.knows("model")) continue;
    const auto name = plain_name(row.text("model"));
    for (const auto& model : kKnownModels) {
      if (name != model.name) continue;
      findings.compared();
      const double right = count_of(model, *classes);
      // A ResNet-18 modified for small images often keeps the name.
      const bool is_small_form =
          name == "resnet18" && is_count(*printed, count_of(kKnownModels[5], *classes));
      if (is_small_form || is_count(*printed, right)) break;
      const auto other = whose(*printed, *classes);
      findings.add(other.empty() ? Severity::warning : Severity::error,
                   {{i}, printed->text, Figure{right, right, right}},
                   fmt::format("{} with {:g} classes has {:.0f} parameters, not {}{}.", row.text("model"),
                               *classes, right, printed->text,
                               other.empty() ? "" : fmt::format(", which is the number of {}", other)));
      break;
    }
  }
}

constexpr Rule kModelRules[] = {
    {"model.parameters", Severity::error, "model classes parameters", "another model's number of parameters",
     check_parameters, "", "a model whose parameters are known here"},
};

/// Whether E epochs of D samples can take so many steps with n workers and a local batch b. The tail may be
/// dropped or kept, for an epoch, for all epochs together or for a worker's shard; the printed number may
/// also be that of one epoch.
bool is_possible(double steps, double samples, double batch, double n, double epochs) {
  const double all = batch * n, shard_up = std::ceil(samples / n), shard_down = std::floor(samples / n);
  const double one[] = {std::floor(samples / all), std::ceil(samples / all), std::ceil(shard_up / batch),
                        std::floor(shard_down / batch), std::ceil(shard_down / batch)};
  const double together = samples * epochs / all;
  return steps == std::floor(together) || steps == std::ceil(together) || steps == std::round(together) ||
         std::ranges::any_of(one, [&](double steps_of_one) {
           return steps == steps_of_one || steps == std::round(epochs * steps_of_one);
         });
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

void check_workers(const Study& study, Findings& findings) {
  constexpr int kMostWorkers = 4096;
  constexpr std::size_t kListed = 4;
  for (const auto& [i, row] : study.rows()) {
    const auto printed = row.value("steps"), samples = row.value("train_samples"),
               batch = row.value("local_batch");
    const auto n = workers(row);
    if (!printed || !samples || !batch || !n || *printed <= 0 || *samples <= 0 || *batch <= 0) continue;
    findings.compared();
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
    auto names = base::joined(fit | std::views::take(kListed), ", ",
                              [](double number) { return fmt::format("{:g}", number); });
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
  for (const auto& [i, row] : study.rows()) {
    const auto samples = row.value("train_samples"), batch = global_batch(row), local = local_batch(row);
    if (!samples || !batch || *samples <= 0) continue;
    findings.compared();
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
  for (const auto& [i, row] : study.rows()) {
    const auto local = row.value("local_batch"), all = row.value("global_batch");
    const auto n = workers(row);
    if (!local || !all || !n || *local <= 0) continue;
    findings.compared();
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
  for (const auto& [i, row] : study.rows()) {
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
     "steps that are those of another number of workers", check_workers, "", "a row that has all of them"},
    {"size.data", Severity::error, "train_samples local_batch|global_batch|batch",
     "a batch of more than there is", check_data, "workers", "a batch that is known to be of all workers"},
    {"size.product", Severity::error, "local_batch global_batch workers",
     "local and global batch that do not fit", check_product, "", "a row that has all of them"},
    {"size.unlabelled", Severity::note, "batch workers", "a batch that is neither called local nor global",
     check_unlabelled},
};

}  // namespace

std::span<const Rule> model_rules() { return kModelRules; }

std::span<const Rule> size_rules() { return kSizeRules; }

}  // namespace paceline::check
