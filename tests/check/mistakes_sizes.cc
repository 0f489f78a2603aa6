/// Batches, workers, steps, samples and parameters that do not fit each other.

#include "check/mistakes.h"

namespace paceline::check::mistakes {
namespace {

using sound::Draw;
using sound::forget;
using sound::SoundTable;

SoundTable sized_table(std::uint64_t seed) { return sound::draw_table(seed + 4000000, true); }

std::optional<Made> other_workers(std::uint64_t seed) {
  auto sound = sized_table(seed);
  for (auto& one : sound.table.rows) {
    if (!one.knows("steps") || !one.knows("local_batch")) continue;
    const double n = *one.value("workers") * 3, all = n * *one.value("local_batch");
    const double steps = std::floor(*one.value("train_samples") / all);
    if (steps < 8) continue;  // of so few steps many numbers of workers have as many
    one.set("steps", steps);
    return Made{sound.table, one.name(), n};
  }
  return std::nullopt;
}

std::optional<Made> more_than_there_is(std::uint64_t seed) {
  auto sound = sized_table(seed);
  Draw draw(seed);
  auto& last = sound.table.rows.back();
  const double shard = std::ceil(*last.value("train_samples") / *last.value("workers"));
  last.set("local_batch", std::ceil(shard * draw.between(1.01, 8)));
  forget(sound.table, {"global_batch", "scaling", "steps", "rate_per_s", "claimed_bandwidth",
                       "claimed_speedup", "claimed_efficiency"});
  return Made{sound.table, last.name(), shard};
}

std::optional<Made> wrong_product(std::uint64_t seed) {
  auto sound = sized_table(seed);
  auto& last = sound.table.rows.back();
  const double right = *last.value("local_batch") * *last.value("workers");
  last.set("global_batch", right * (seed % 2 == 0 ? 2 : 0.5));
  return Made{sound.table, last.name(), right};
}

std::optional<Made> nobody_says_whose(std::uint64_t seed) {
  auto sound = sized_table(seed);
  for (auto& row : sound.table.rows) row.set("batch", *row.value("local_batch"));
  forget(sound.table, {"local_batch", "global_batch"});
  return Made{sound.table, sound.table.rows.back().name(), {}};
}

std::optional<Made> another_model(std::uint64_t seed) {
  struct Model {
    const char* name;
    double body, per_class;
  };
  constexpr Model kModels[] = {{"ResNet-18", 11176512, 513},  {"resnet34", 21284672, 513},
                               {"ResNet50", 23508032, 2049},  {"resnet_101", 42500160, 2049},
                               {"VGG16", 134260544, 4097},    {"DenseNet-121", 6953856, 1025},
                               {"MobileNetV2", 2223872, 1281}};
  auto sound = sized_table(seed);
  Draw draw(seed);
  const auto& model = kModels[draw.whole(0, 6)];
  const auto& other = kModels[draw.whole(0, 6)];
  if (model.name == other.name) return std::nullopt;
  const double classes = draw.one_of({10.0, 100.0, 1000.0, 37.0});
  forget(sound.table, {"claimed_bandwidth"});
  for (auto& row : sound.table.rows) {
    row.set("model", model.name);
    row.set("classes", classes);
    row.set("parameters", other.body + other.per_class * classes);
  }
  return Made{sound.table, sound.table.rows.front().name(), model.body + model.per_class * classes};
}

}  // namespace

std::vector<Mistake> of_sizes() {
  return {
      {"other workers", "size.workers", other_workers},
      {"more than there is", "size.data", more_than_there_is},
      {"wrong product",
       "size.product",
       wrong_product,
       {"time.rate", "size.data", "bandwidth.formula", "scaling.mixed", "ratio.speedup", "ratio.efficiency"}},
      {"nobody says whose", "size.unlabelled", nobody_says_whose},
      {"another model", "model.parameters", another_model},
  };
}

}  // namespace paceline::check::mistakes
