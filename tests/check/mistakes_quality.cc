/// Losses and accuracies that cannot be, that chance gives, and what else differs beside them.

#include "check/mistakes.h"

namespace paceline::check::mistakes {
namespace {

using sound::Draw;
using sound::Table;

/// With at least `rows` rows, and no means over seeds.
Table qualities(std::uint64_t seed, std::size_t rows = 1) {
  for (std::uint64_t k = 0;; ++k) {
    Draw draw(seed * 257 + k);
    auto table = sound::quality_table(draw);
    std::erase_if(table.rows, [](const auto& row) { return row.knows("statistic"); });
    if (table.rows.size() >= rows) return table;
  }
}

std::optional<Made> loss_too_low(std::uint64_t seed, double below) {
  auto table = qualities(seed);
  auto& row = table.rows.back();
  const double errors = 1 - *row.value("accuracy");
  if (errors < 0.02) return std::nullopt;  // the digits of an accuracy of 0.999 leave too much open
  row.set("loss", fmt::format("{:.6f}", errors * below * std::log(2.0)));
  return Made{table, row.name(), 1 - *row.value("loss") / (2 * std::log(2.0))};
}

std::optional<Made> loss_is_a_sum(std::uint64_t seed) {
  auto table = qualities(seed);
  auto& row = table.rows.back();
  if (*row.value("accuracy") <= 0.5) return std::nullopt;
  row.set("loss", fmt::format("{:.2f}", *row.value("loss") * *row.value("test_samples")));
  return Made{table, row.name(), {}};
}

std::optional<Made> no_count(std::uint64_t seed) {
  Draw draw(seed);
  auto table = qualities(seed);
  auto& row = table.rows.back();
  const double tests = *row.value("test_samples");
  const double counted = std::floor(*row.value("accuracy") * tests * 0.9) + draw.between(0.3, 0.7);
  row.set("accuracy", fmt::format("{:.7f}", counted / tests));
  row.set("loss", "");
  row.set("seeds", "");
  return Made{table, row.name(), std::round(counted) / tests};
}

std::optional<Made> best_by_chance(std::uint64_t seed) {
  Draw draw(seed);
  auto table = qualities(seed, 2);
  const double tests = *table.rows.front().value("test_samples"), p = draw.between(0.5, 0.98);
  const double error = std::sqrt(2 * p * (1 - p) / tests);
  for (auto& row : table.rows) {
    row.set("accuracy", fmt::format("{:.6f}", std::round(p * tests) / tests));
    row.set("loss", "");
    row.set("best", "no");
  }
  auto& best = table.rows.back();
  best.set("accuracy",
           fmt::format("{:.6f}", std::ceil((p + draw.between(0.2, 1.6) * error) * tests) / tests));
  best.set("best", "yes");
  const double difference = *best.value("accuracy") - *table.rows.front().value("accuracy");
  return difference < 1.9 * error ? std::optional(Made{table, best.name(), difference}) : std::nullopt;
}

std::optional<Made> fewer_updates(std::uint64_t seed) {
  for (std::uint64_t k = 0; k < 50; ++k) {
    auto table = qualities(seed + 1000 * k, 2);
    if (*table.rows.back().value("global_batch") < 2 * *table.rows.front().value("global_batch")) continue;
    return Made{table, table.rows.back().name(), *table.rows.back().value("updates")};
  }
  return std::nullopt;
}

std::optional<Made> other_rate(std::uint64_t seed) {
  Draw draw(seed);
  auto table = qualities(seed, 2);
  auto& last = table.rows.back();
  auto& first = table.rows.front();
  const double grown = *last.value("global_batch") / *first.value("global_batch");
  const double right = *first.value("learning_rate") * grown;
  last.set("learning_rate", fmt::format("{:.5g}", right * draw.between(6, 100)));
  return Made{table, last.name(), right};
}

std::optional<Made> failed_left_out(std::uint64_t seed) {
  for (std::uint64_t k = 0; k < 50; ++k) {
    auto table = qualities(seed + 1000 * k, 2);
    auto& row = table.rows.front();
    if (*row.value("seeds") < 2) continue;
    row.set("accuracy", "");
    row.set("loss", "");
    return Made{table, row.name(), {}};
  }
  return std::nullopt;
}

}  // namespace

std::vector<Mistake> of_quality() {
  return {
      {"loss below every classifier", "accuracy.loss-bound",
       [](auto seed) { return loss_too_low(seed, 0.6); }},
      {.name = "loss of another set",
       .rule = "accuracy.loss-bound",
       .make = [](auto seed) { return loss_too_low(seed, 1.5); },
       .is_weaker = true},
      {"loss is a sum", "accuracy.loss-scale", loss_is_a_sum},
      {"no count", "accuracy.count", no_count},
      {"best by chance", "accuracy.noise", best_by_chance},
      {"fewer updates", "accuracy.updates", fewer_updates},
      {"other learning rate", "accuracy.learning-rate", other_rate},
      {"failed left out", "accuracy.survivors", failed_left_out},
  };
}

}  // namespace paceline::check::mistakes
