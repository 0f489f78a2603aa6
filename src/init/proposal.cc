#include "init/proposal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "graph/plan.h"
#include "graph/zoo.h"
#include "train/given/names.h"

namespace paceline::init {
namespace {

// Thresholds at which a choice changes. Reasons in the recipe name them.
constexpr std::int64_t kFewImages = 5'000;  ///< a network with 11 million parameters memorises fewer images
constexpr int kDigitSide = 40;              ///< grey images up to this size are probably characters
constexpr int kLeastPhotoSide = 64;
constexpr std::array kSides{224, 192, 160, 128, 96, 64, 48, 32, 24, 16};
constexpr double kWishedSeconds = 1800;   ///< wanted time of the whole training, estimated by kCountedFlops
constexpr std::int64_t kUpdates = 3'000;  ///< updates that a training should have
constexpr std::int64_t kUpdatesAnEpoch = 40;
constexpr int kFewestEpochs = 20, kMostEpochs = 60;

/// Why a mirrored image may be of another class; "" if it is not.
std::string against_mirroring(const DataFacts& facts) {
  const auto is_character = [](const std::string& name) {
    static const std::array kWords{"zero", "one", "two",   "three", "four",
                                   "five", "six", "seven", "eight", "nine"};
    return name.size() == 1 ||
           (name.size() <= 3 &&
            std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; })) ||
           std::ranges::find(kWords, base::lower_case(name)) != kWords.end();
  };
  if (std::ranges::all_of(facts.class_names, is_character))
    return "the classes are named as characters, and a mirrored character is another one or none";
  for (const auto& name : facts.class_names)
    for (const char* side : {"left", "right"})
      if (base::lower_case(name).find(side) != std::string::npos)
        return fmt::format(
            "the class '{}' tells left from right, and a mirrored image would belong to the "
            "other",
            name);
  return "";
}

/// The choices on which the others depend.
struct Outline {
  std::string model;
  int side = 0;
  bool is_characters = false;
  double flops = 0;  ///< for training on one image
};

double flops_of(const DataFacts& facts, const std::string& model, int side) {
  const graph::Shape input{.channels = facts.has_sizes ? 3 : facts.format.channels,
                           .height = facts.has_sizes ? side : facts.format.height,
                           .width = facts.has_sizes ? side : facts.format.width};
  return static_cast<double>(graph::training_flops(graph::make_model(model, input, facts.classes(), 0)));
}

std::string model_for(const DataFacts& facts, int side) {
  if (facts.train < kFewImages) return "resnet8-cifar";
  return side >= kLeastPhotoSide ? "resnet18" : "resnet18-cifar";
}

std::int64_t batch_for(const DataFacts& facts, std::int64_t most) {
  std::int64_t batch = 8;
  while (batch < most && facts.train / (2 * batch) >= kUpdatesAnEpoch) batch *= 2;
  while (batch > 1 && batch > std::min(facts.train, most)) batch /= 2;
  return batch;
}

int epochs_for(const DataFacts& facts, std::int64_t batch) {
  const auto updates = std::max<std::int64_t>(1, facts.train / batch);
  return static_cast<int>(
      std::clamp<std::int64_t>((kUpdates + updates / 2) / updates, kFewestEpochs, kMostEpochs));
}

double seconds_of(const DataFacts& facts, const MachineFacts& machine, double flops, int epochs) {
  return flops * static_cast<double>(facts.train) * epochs / (kCountedFlops * machine.cores);
}

/// Chooses the image size: the largest for which images need not be enlarged and the training ends within
/// kWishedSeconds, but at least large enough to recognise something.
Outline shape_for(const DataFacts& facts, const MachineFacts& machine, int epochs) {
  const int natural = facts.median_side();
  Outline shape{.is_characters = facts.is_mostly_grey() && natural <= kDigitSide};
  if (shape.is_characters) {
    shape.side = std::clamp(natural, 16, kDigitSide);
    shape.model = "mnist-cnn";
    shape.flops = flops_of(facts, shape.model, shape.side);
    return shape;
  }
  if (!facts.has_sizes) {
    shape.side = natural;
    shape.model = model_for(facts, natural);
    shape.flops = flops_of(facts, shape.model, natural);
    if (seconds_of(facts, machine, shape.flops, epochs) > kWishedSeconds && natural < kLeastPhotoSide) {
      shape.model = "resnet8-cifar";
      shape.flops = flops_of(facts, shape.model, natural);
    }
    return shape;
  }
  for (const int side : kSides) {
    if (side > std::max(natural, kSides.back())) continue;
    shape.side = side;
    shape.model = model_for(facts, side);
    shape.flops = flops_of(facts, shape.model, side);
    if (side <= kLeastPhotoSide || seconds_of(facts, machine, shape.flops, epochs) <= kWishedSeconds) break;
  }
  if (shape.model == "resnet18-cifar" && seconds_of(facts, machine, shape.flops, epochs) > kWishedSeconds) {
    shape.model = "resnet8-cifar";
    shape.flops = flops_of(facts, shape.model, shape.side);
  }
  return shape;
}

std::string about_how_long(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", std::max(1.0, seconds));
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string reason_of_size(const DataFacts& facts, const Outline& shape) {
  const int natural = facts.median_side();
  std::string text =
      fmt::format("The shorter side of the images is {}. ",
                  facts.short_sides.front() == facts.short_sides.back()
                      ? fmt::format("{} pixels", natural)
                      : fmt::format("{} to {} pixels, in the median {}", facts.short_sides.front(),
                                    facts.short_sides.back(), natural));
  if (shape.is_characters) return text + "They are taken as they are.";
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

void choose_data(const DataFacts& facts, const Outline& shape, Proposal& proposal) {
  std::string spec = facts.spec, reason;
  if (facts.test_from == TestFrom::cut)
    reason =
        "There is no test folder: a fifth of every class is the test set (test=0.2), the same images for every seed. ";
  if (facts.test_from == TestFrom::validation_folder)
    reason = "There is no test folder: the validation folder is the test set. ";
  if (facts.spec.ends_with(",classes=top"))
    reason += "classes=top: folders lie inside a class's folder, and their images are that class's. ";
  const auto mirror = against_mirroring(facts);
  if (facts.has_sizes) {
    spec += fmt::format(",size={}", shape.side);
    reason += reason_of_size(facts, shape) + " ";
    if (shape.is_characters) {
      spec += ",crop-area=0.8";
      reason += "crop-area=0.8: characters fill their image, and a small part of one can be another. ";
    } else if (facts.is_mostly_plain()) {
      spec += ",crop-area=0.4";
      reason +=
          "crop-area=0.4: the corners are of one colour, so the object is in the middle, and a smaller crop "
          "may miss it. ";
    } else {
      spec += ",crop-area=0.25";
      reason +=
          "crop-area=0.25: each image is shown as a random part of a quarter to all of it; ImageNet's 0.08 is for more "
          "images than these. ";
    }
    if (!mirror.empty()) spec += ",flip=0";
    reason +=
        mirror.empty() ? "Half of them are mirrored (flip=0 turns that off)." : "flip=0: " + mirror + ".";
  } else {
    reason += "Images of one size, with the augmentation that is usual for them.";
  }
  proposal.choices.push_back({"data", toml_string(spec), reason});
  proposal.options.data = spec;
  if (!facts.has_sizes && !mirror.empty() && facts.format.channels == 3)
    proposal.choices.push_back({"flip", "\"none\"", "flip: " + mirror + "."});
}

void choose_model(const DataFacts& facts, const Outline& shape, const MachineFacts& machine,
                  Proposal& proposal) {
  std::string reason;
  if (shape.is_characters)
    reason =
        "Small grey images: a convolutional network of two layers is enough, 99 % on MNIST (recipes/mnist.toml).";
  else if (facts.train < kFewImages)
    reason = fmt::format(
        "{} training images are few (below {}): a network of some 80,000 parameters, since one of 11 "
        "million would memorise them. It reached 97 % on 24 fruits (recipes/fruits.toml).",
        facts.train, kFewImages);
  else if (shape.model == "resnet8-cifar")
    reason = fmt::format(
        "resnet18-cifar is the larger network, but would take more than {} on {} core{}: start with the "
        "small one.",
        about_how_long(kWishedSeconds), machine.cores, machine.cores == 1 ? "" : "s");
  else
    reason = fmt::format("{} training images are enough for ResNet-18{}.", facts.train,
                         shape.model == "resnet18" ? "" : ", in its form for small images");
  proposal.choices.push_back({"model", toml_string(shape.model), reason});
  proposal.options.model = shape.model;
}

/// The number of images of the median class.
std::int64_t median_class(const DataFacts& facts) {
  auto counts = facts.per_class;
  std::ranges::sort(counts);
  return counts[counts.size() / 2];
}

void choose_validation(const DataFacts& facts, Proposal& proposal) {
  constexpr std::int64_t kLeast = 100, kMany = 2'000;
  if (facts.validation > 0) {
    proposal.choices.push_back(
        {"validation-split", "",
         fmt::format("{} images of the validation folder choose the best epoch; the test set is read "
                     "once, at the end.",
                     facts.validation)});
    return;
  }
  const double part = facts.train >= kMany ? 0.1 : 0.2;
  const auto held = std::llround(part * static_cast<double>(median_class(facts)));
  if (facts.train < kLeast || held < 1) {
    proposal.choices.push_back(
        {"validation-split", "",
         fmt::format(
             "{} training images, {} in the median class, are too few to hold some back: no epoch is chosen, and "
             "the figure that counts is the last epoch's on the test set.",
             facts.train, median_class(facts))});
    return;
  }
  proposal.choices.push_back(
      {"validation-split", fmt::format("{:g}", part),
       fmt::format(
           "There is no validation folder: {:.0f} % of every training class is held back, the same images for "
           "every seed. The best epoch is chosen on them, and the test set is read once, at the end.",
           100 * part)});
  proposal.options.validation_split = part;
}

void choose_broken(const DataFacts& facts, Proposal& proposal) {
  if (!facts.has_sizes) return;
  if (facts.broken.empty()) {
    if (!facts.looked_at_all())
      proposal.choices.push_back(
          {"bad-images", "",
           fmt::format(
               "None of {} images looked at is broken, of {}. Should a training stop at one: bad-images = \"skip\" "
               "decodes all before the first step; 'paceline data verify' names them.",
               facts.looked_at, facts.all())});
    return;
  }
  proposal.choices.push_back(
      {"bad-images", "\"skip\"",
       fmt::format(
           "{} of {} images looked at cannot be decoded ({}). Such are left out, named and counted: all images are "
           "decoded once before the first step.",
           facts.broken.size(), facts.looked_at, facts.broken.front())});
}

void choose_batch(const DataFacts& facts, const MachineFacts& machine, std::int64_t batch,
                  Proposal& proposal) {
  const auto updates = facts.train / batch;
  std::string reason = fmt::format("{} updates an epoch: ", updates);
  if (updates < kUpdatesAnEpoch)
    reason += "there are few images, and a smaller batch would leave too few of them in a step.";
  else if (batch == machine.most_batch && batch < 128)
    reason += "the largest batch whose memory this machine has.";
  else
    reason += batch == 128
                  ? "enough, and a batch of 128 keeps the cores busy."
                  : fmt::format("a larger batch leaves fewer than {}, and such a training sees too few.",
                                kUpdatesAnEpoch);
  proposal.choices.push_back({"global-batch", std::to_string(batch), reason});
  proposal.options.global_batch = batch;
}

void choose_rule(const DataFacts& facts, const Outline& shape, std::int64_t batch, Proposal& proposal) {
  auto& choices = proposal.choices;
  if (shape.is_characters) {
    choices.push_back({"optimizer", "\"adamw\"",
                       "AdamW at 0.002 with a one-cycle schedule, as in recipes/mnist.toml, which was "
                       "tested."});
    choices.push_back({"lr", "0.002", ""});
  } else {
    // The rate was tested with batches from 32 on; smaller batches have noisier steps.
    constexpr double kProvenBatch = 32;
    const double peak = (shape.model == "resnet8-cifar" ? 0.1 : 0.05) *
                        std::min(1.0, static_cast<double>(batch) / kProvenBatch);
    choices.push_back(
        {"optimizer", "\"sgd\"",
         fmt::format(
             "SGD with Nesterov momentum and a one-cycle schedule: the usual rule for this network; a peak "
             "of {:g} was tested with {}{}. With --global-batch 4 times as large, the rate is too.",
             shape.model == "resnet8-cifar" ? 0.1 : 0.05,
             shape.model == "resnet8-cifar" ? "recipes/fruits.toml" : "recipes/caltech256.toml",
             batch < kProvenBatch
                 ? fmt::format(", here times {} / {:g} for the small batch", batch, kProvenBatch)
                 : "")});
    choices.push_back({"momentum", "0.9", ""});
    choices.push_back({"nesterov", "true", ""});
    choices.push_back({"lr", fmt::format("{:g}", peak), ""});
    choices.push_back({"lr-batch", std::to_string(batch), ""});
    choices.push_back({"scale-lr", "\"linear\"", ""});
  }
  choices.push_back(
      {"schedule", "\"one-cycle\"",
       "The rate rises for a third of the training and falls to 0, so that the last epochs are spent near the "
       "minimum: the whole length counts, and a training that is stopped early has not reached it."});
  if (shape.is_characters) return;
  choices.push_back({"weight-decay", facts.train < kFewImages ? "1e-3" : "5e-4",
                     facts.train < kFewImages ? "More than the usual 5e-4, because the images are few."
                                              : "The usual one."});
  if (facts.classes() > 2)
    choices.push_back(
        {"label-smoothing", "0.1", "Keeps the network from becoming too certain of its training images."});
}

void choose_length(const DataFacts& facts, const MachineFacts& machine, const Outline& shape,
                   std::int64_t batch, int epochs, Proposal& proposal) {
  const double seconds = seconds_of(facts, machine, shape.flops, epochs);
  proposal.is_long = seconds > 3600;
  proposal.choices.push_back(
      {"epochs", std::to_string(epochs),
       fmt::format(
           "{} updates in all ({} to {} epochs, about {} updates where that lies between). Counted with 20 GFLOP/s a "
           "core, {} core{} need about {}, evaluations and decoding apart; --plan knows better once a short run was "
           "measured.",
           epochs * (facts.train / batch), kFewestEpochs, kMostEpochs, kUpdates, machine.cores,
           machine.cores == 1 ? "" : "s", about_how_long(seconds))});
  proposal.options.epochs = epochs;
}

void choose_machine(const DataFacts& facts, const MachineFacts& machine, Proposal& proposal) {
  proposal.choices.push_back(
      {"precision", "\"auto\"",
       fmt::format("{} here: {}. Another kind of processor may take the other; weights are fp32 in both.",
                   train::name(machine.precision.precision), machine.precision.reason)});
  proposal.choices.push_back(
      {"workers", "1",
       fmt::format(
           "One worker uses all cores ({} here). Whether several are faster: paceline scale RECIPE --workers 1,2,4.",
           machine.cores)});
  constexpr std::int64_t kManyFiles = 20'000;
  if (facts.has_sizes && facts.all() > kManyFiles)
    proposal.warnings.push_back(fmt::format(
        "{} files: a cluster's file system reads one archive faster; paceline data pack {} images.tar",
        facts.all(), facts.spec));
}

void warn(const DataFacts& facts, Proposal& proposal) {
  auto& warnings = proposal.warnings;
  if (!facts.broken.empty())
    warnings.push_back(
        fmt::format("{} of {} images looked at cannot be decoded, and are left out; the first: {}",
                    facts.broken.size(), facts.looked_at, facts.broken.front()));
  if (facts.across_parts > 0)
    warnings.push_back(
        fmt::format("{} image{} in two parts, such as {}: accuracy on such images does not test what was "
                    "learned; 'paceline data verify' lists them",
                    facts.across_parts, facts.across_parts == 1 ? " is" : "s are", facts.duplicates.front()));
  if (facts.contradicting > 0)
    warnings.push_back(
        fmt::format("{} of the images that come twice stand under two classes", facts.contradicting));
  constexpr std::int64_t kFewInClass = 10;
  const auto few = std::ranges::count_if(facts.per_class, [](auto count) { return count < kFewInClass; });
  if (few > 0)
    warnings.push_back(fmt::format("{} class{} fewer than {} training images, too few to learn {}", few,
                                   few == 1 ? " has" : "es have", kFewInClass, few == 1 ? "it" : "them"));
  else if (facts.most() > 5 * facts.fewest())
    warnings.push_back(
        fmt::format("the largest class has {:.1f} times the images of the smallest: look at the accuracy of "
                    "each class, paceline evaluate prints it",
                    static_cast<double>(facts.most()) / static_cast<double>(facts.fewest())));
}

}  // namespace

Proposal propose(const DataFacts& whole, const MachineFacts& machine) {
  Proposal proposal;
  DataFacts facts = whole;
  choose_validation(whole, proposal);  // before the rest, since validation images are not trained on
  const auto validation = proposal.choices.back();
  proposal.choices.clear();
  for (const auto count : whole.per_class)
    facts.train -= std::min<std::int64_t>(
        count - 1, std::llround(proposal.options.validation_split * static_cast<double>(count)));
  const auto batch = batch_for(facts, machine.most_batch);
  const auto epochs = epochs_for(facts, batch);
  const auto shape = shape_for(facts, machine, epochs);
  choose_data(facts, shape, proposal);
  proposal.choices.push_back(validation);
  choose_broken(whole, proposal);
  choose_model(facts, shape, machine, proposal);
  choose_batch(facts, machine, batch, proposal);
  choose_length(facts, machine, shape, batch, epochs, proposal);
  choose_rule(facts, shape, batch, proposal);
  choose_machine(facts, machine, proposal);
  warn(whole, proposal);
  return proposal;
}

}  // namespace paceline::init
