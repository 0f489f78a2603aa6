#include "init/outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "graph/plan.h"
#include "graph/zoo.h"

namespace paceline::init {
namespace {

constexpr int kDigitSide = 40;  ///< grey images up to this size are probably characters
constexpr int kLeastPhotoSide = 64;
constexpr std::array kSides{224, 192, 160, 128, 96, 64, 48, 32, 24, 16};

double flops_of(const DataFacts& facts, const std::string& model, int side) {
  const graph::Shape input{.channels = facts.has_sizes ? 3 : facts.format.channels,
                           .height = facts.has_sizes ? side : facts.format.height,
                           .width = facts.has_sizes ? side : facts.format.width};
  return static_cast<double>(graph::training_flops(graph::make_model(model, input, facts.classes(), 0)));
}

std::string model_for(const DataFacts& facts, int side, const GivenModel& given) {
  if (!given.model.empty()) return given.model;
  if (facts.train < kFewImages) return "resnet8-cifar";
  return side >= kLeastPhotoSide ? "resnet18" : "resnet18-cifar";
}

/// Between which sides a given network is trained: one that is not for small images sees no smaller ones,
/// even if they must be enlarged, and weights see none larger than those that they were made for.
struct Sides {
  int least = 0, most = kSides.front();
  bool is_of_weights = false;
};

Sides sides_of(const GivenModel& given) {
  constexpr int kLeastOfLargeNetworks = 128;  // they divide the side by 32
  if (given.model.empty()) return {};
  Sides sides;
  const auto recorded = graph::recorded_input_of(given.model);
  sides.is_of_weights = recorded && !given.weights.empty();
  if (sides.is_of_weights) sides.most = std::max(kSides.back(), recorded->height);
  const bool is_large = graph::usual_input(given.model).height > kLeastOfLargeNetworks;
  if (is_large || sides.is_of_weights) sides.least = std::min(sides.most, kLeastOfLargeNetworks);
  return sides;
}

}  // namespace

std::int64_t batch_for(const DataFacts& facts, std::int64_t most) {
  std::int64_t batch = 8;
  while (batch < most && facts.train / (2 * batch) >= kUpdatesAnEpoch) batch *= 2;
  while (batch > 1 && batch > std::min(facts.train, most)) batch /= 2;
  return batch;
}

int epochs_for(const DataFacts& facts, std::int64_t batch, const GivenModel& given) {
  const auto updates = std::max<std::int64_t>(1, facts.train / batch);
  const auto epochs =
      std::clamp<std::int64_t>((kUpdates + updates / 2) / updates, kFewestEpochs, kMostEpochs);
  return static_cast<int>(given.weights.empty() ? epochs
                                                : std::llround(kTuningPart * static_cast<double>(epochs)));
}

double seconds_of(const DataFacts& facts, const MachineFacts& machine, double flops, int epochs) {
  return flops * static_cast<double>(facts.train) * epochs / (kCountedFlops * machine.cores);
}

Outline shape_for(const DataFacts& facts, const MachineFacts& machine, const GivenModel& given, int epochs) {
  const int natural = facts.median_side();
  Outline shape{.is_characters = facts.is_mostly_grey() && natural <= kDigitSide && given.model.empty()};
  const auto take = [&](const std::string& model, int side) {
    shape.model = model;
    shape.side = side;
    shape.flops = flops_of(facts, model, side);
  };
  const auto is_long = [&] { return seconds_of(facts, machine, shape.flops, epochs) > kWishedSeconds; };
  if (shape.is_characters) {
    take("mnist-cnn", std::clamp(natural, 16, kDigitSide));
    return shape;
  }
  if (!facts.has_sizes) {
    take(model_for(facts, natural, given), natural);
  } else {
    const auto [least, most, is_of_weights] = sides_of(given);
    for (const int side : kSides) {
      if (side > std::min(most, std::max({natural, kSides.back(), least}))) continue;
      take(model_for(facts, side, given), side);
      if (side <= std::max(least, kLeastPhotoSide) || !is_long()) break;
    }
  }
  if (given.model.empty() && shape.model == "resnet18-cifar" && is_long()) take("resnet8-cifar", shape.side);
  return shape;
}

std::string reason_of_size(const DataFacts& facts, const Outline& shape, const GivenModel& given) {
  const int natural = facts.median_side();
  std::string text =
      fmt::format("The shorter side of the images is {}. ",
                  facts.short_sides.front() == facts.short_sides.back()
                      ? fmt::format("{} pixels", natural)
                      : fmt::format("{} to {} pixels, in the median {}", facts.short_sides.front(),
                                    facts.short_sides.back(), natural));
  if (shape.is_characters) return text + "They are taken as they are.";
  if (const auto sides = sides_of(given); sides.is_of_weights && shape.side == sides.most)
    return text + fmt::format("size={}: as the model's file says that its weights were made.", shape.side);
  if (shape.side > natural)
    return text + fmt::format("size={}: the smallest that the models take well.", shape.side);
  text += fmt::format("size={}: no image has to be enlarged", shape.side);
  const auto larger = std::ranges::find_if(kSides, [&](int side) { return side <= natural; });
  return text +
         (larger != kSides.end() && *larger > shape.side
              ? fmt::format(
                    ", and the training stays short; size={} shows more and costs {:.1f} times as much "
                    "time.",
                    *larger, std::pow(1.0 * *larger / shape.side, 2))
              : ".");
}

}  // namespace paceline::init
