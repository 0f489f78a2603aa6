#include "init/proposal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "data/class_balance.h"
#include "train/given/names.h"

namespace paceline::init {
namespace {

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

/// What the choices are made from. `whole` has the images that validation will take from `facts`.
struct Inputs {
  const DataFacts& whole;
  const DataFacts& facts;
  const MachineFacts& machine;
  const GivenModel& given;
  const Outline& shape;
  double held_back;  ///< part of every training class, for validation; 0: none
  std::int64_t batch;
  int epochs;
};

/// A row is taken if `when` holds; of several with one key the first that does.
struct Row {
  const char* key;
  std::string value;  ///< as in Choice
  bool when;
  std::string reason;
};

/// What is added to the data's spec, and to the reason for it.
struct SpecRow {
  bool when;
  std::string piece, sentence;
};

std::string first_of(const std::vector<std::string>& texts) { return texts.empty() ? "" : texts.front(); }

/// The number of images of the median class.
std::int64_t median_class(const DataFacts& facts) {
  auto counts = facts.per_class;
  std::ranges::sort(counts);
  return counts[counts.size() / 2];
}

/// The part of every training class that is held back for validation; 0 if there is a validation folder, or
/// too few images.
double held_back_of(const DataFacts& facts) {
  constexpr std::int64_t kLeast = 100, kMany = 2'000;
  const double part = facts.train >= kMany ? 0.1 : 0.2;
  const auto held = std::llround(part * static_cast<double>(median_class(facts)));
  return facts.validation > 0 || facts.train < kLeast || held < 1 ? 0 : part;
}

std::vector<SpecRow> rows_of_data(const DataFacts& facts, const Outline& shape, const GivenModel& given,
                                  const std::string& mirror) {
  const bool has_sizes = facts.has_sizes, is_plain = has_sizes && facts.is_mostly_plain();
  return {
      {facts.test_from == TestFrom::cut, "",
       "There is no test folder: a fifth of every class is the test set (test=0.2), the same images for every seed."},
      {facts.test_from == TestFrom::validation_folder, "",
       "There is no test folder: the validation folder is the test set."},
      {facts.spec.ends_with(",classes=top"), "",
       "classes=top: folders lie inside a class's folder, and their images are that class's."},
      {has_sizes, fmt::format(",size={}", shape.side), has_sizes ? reason_of_size(facts, shape, given) : ""},
      {has_sizes && shape.is_characters, ",crop-area=0.8",
       "crop-area=0.8: characters fill their image, and a small part of one can be another."},
      {is_plain && !shape.is_characters, ",crop-area=0.4",
       "crop-area=0.4: the corners are of one colour, so the object is in the middle, and a smaller crop may miss it."},
      {has_sizes && !is_plain && !shape.is_characters, ",crop-area=0.25",
       "crop-area=0.25: each image is shown as a random part of a quarter to all of it; ImageNet's 0.08 is for more "
       "images than these."},
      {has_sizes && mirror.empty(), "", "Half of them are mirrored (flip=0 turns that off)."},
      {has_sizes && !mirror.empty(), ",flip=0", "flip=0: " + mirror + "."},
      {!has_sizes, "", "Images of one size, with the augmentation that is usual for them."}};
}

Row row_of_data(const DataFacts& facts, const Outline& shape, const GivenModel& given,
                const std::string& mirror, std::string& spec) {
  std::string reason;
  spec = facts.spec;
  for (const auto& [when, piece, sentence] : rows_of_data(facts, shape, given, mirror)) {
    if (!when) continue;
    spec += piece;
    reason += (reason.empty() ? "" : " ") + sentence;
  }
  return {"data", toml_string(spec), true, reason};
}

std::vector<Row> rows_of_images(const Inputs& in, const std::string& mirror) {
  const auto& [whole, facts, machine, given, shape, held_back, batch, epochs] = in;
  return {
      {"flip", "\"none\"", !facts.has_sizes && !mirror.empty() && facts.format.channels == 3,
       "flip: " + mirror + "."},
      {"validation-split", "", whole.validation > 0,
       fmt::format(
           "{} images of the validation folder choose the best epoch; the test set is read once, at the end.",
           whole.validation)},
      {"validation-split", "", held_back == 0,
       fmt::format(
           "{} training images, {} in the median class, are too few to hold some back: no epoch is chosen, "
           "and the figure that counts is the last epoch's on the test set.",
           whole.train, median_class(whole))},
      {"validation-split", fmt::format("{:g}", held_back), true,
       fmt::format(
           "There is no validation folder: {:.0f} % of every training class is held back, the same images "
           "for every seed. The best epoch is chosen on them, and the test set is read once, at the end.",
           100 * held_back)},
      {"bad-images", "", facts.has_sizes && whole.broken.empty() && !whole.looked_at_all(),
       fmt::format(
           "None of {} images looked at is broken, of {}. Should a training stop at one: bad-images = "
           "\"skip\" decodes all before the first step; 'paceline data verify' names them.",
           whole.looked_at, whole.all())},
      {"bad-images", "\"skip\"", facts.has_sizes && !whole.broken.empty(),
       fmt::format(
           "{} of {} images looked at cannot be decoded ({}). Such are left out, named and counted: all "
           "images are decoded once before the first step.",
           whole.broken.size(), whole.looked_at, first_of(whole.broken))}};
}

std::vector<Row> rows_of_model(const Inputs& in) {
  const auto& [whole, facts, machine, given, shape, held_back, batch, epochs] = in;
  const auto model = toml_string(shape.model), size = std::to_string(batch);
  const auto updates = facts.train / batch;
  const bool is_tuning = !given.weights.empty();
  const auto of_batch = [&](const std::string& why) {
    return fmt::format("{} updates an epoch: {}.", updates, why);
  };
  return {
      {"model", model, !given.model.empty(), "Given with --model."},
      {"model", model, shape.is_characters,
       "Small grey images: a convolutional network of two layers is enough, 99 % on MNIST (recipes/mnist.toml)."},
      {"model", model, facts.train < kFewImages,
       fmt::format(
           "{} training images are few (below {}): a network of some 80,000 parameters, since one of 11 "
           "million would memorise them. It reached 97 % on 24 fruits (recipes/fruits.toml).",
           facts.train, kFewImages)},
      {"model", model, shape.model == "resnet8-cifar",
       fmt::format(
           "resnet18-cifar is the larger network, but would take more than {} on {}: start with the small one.",
           base::rough_time(kWishedSeconds), base::counted(machine.cores, "core"))},
      {"model", model, true,
       fmt::format("{} training images are enough for ResNet-18{}.", facts.train,
                   shape.model == "resnet18" ? "" : ", in its form for small images")},
      {"weights", toml_string(given.weights), is_tuning,
       "Given with --weights: the training goes on from them, and a last layer for other classes is drawn anew. All "
       "layers learn; --freeze all-but-last trains that one alone, in a fraction of the time, and often "
       "less accurately."},
      {"global-batch", size, updates < kUpdatesAnEpoch,
       of_batch("there are few images, and a smaller batch would leave too few of them in a step")},
      {"global-batch", size, batch == machine.most_batch && batch < 128,
       of_batch("the largest batch whose memory this machine has")},
      {"global-batch", size, batch == 128, of_batch("enough, and a batch of 128 keeps the cores busy")},
      {"global-batch", size, true,
       of_batch(fmt::format("a larger batch leaves fewer than {}, and such a training sees too few",
                            kUpdatesAnEpoch))},
      {"epochs", std::to_string(epochs), true,
       fmt::format(
           "{} updates in all ({}). Counted with 20 GFLOP/s a core, {} need about {}, evaluations and decoding "
           "apart; --plan knows better once a short run was measured.",
           epochs * updates,
           is_tuning ? "a fifth of what random weights would get"
                     : fmt::format("{} to {} epochs, about {} updates where that lies between", kFewestEpochs,
                                   kMostEpochs, kUpdates),
           base::counted(machine.cores, "core"),
           base::rough_time(std::max(1.0, seconds_of(facts, machine, shape.flops, epochs))))}};
}

std::vector<Row> rows_of_rule(const Inputs& in) {
  const auto& [whole, facts, machine, given, shape, held_back, batch, epochs] = in;
  // The rate was tested with batches from 32 on; smaller batches have noisier steps.
  constexpr double kProvenBatch = 32;
  constexpr double kVeryUneven = 20;  // docs/uneven.md
  const bool is_sgd = !shape.is_characters, is_small = shape.model == "resnet8-cifar";
  const double proven = is_small ? 0.1 : 0.05;
  const bool is_tuning = !given.weights.empty();
  const double part =
      std::min(1.0, static_cast<double>(batch) / kProvenBatch) * (is_tuning ? kTuningPart : 1);
  const double ratio = data::unevenness(facts.per_class);
  const auto uneven = [&](const char* what) {
    return fmt::format(
        "The largest class has {:.3g} times the training images of the smallest (proposed from {:g} on): {} The small "
        "classes gain, and accuracy over all images may fall: paceline evaluate prints that and the mean of the "
        "classes. Without this line the training counts every image alike.",
        ratio, data::kUneven, what);
  };
  return {
      {"class-weights", "\"balanced\"", ratio >= data::kUneven && ratio < kVeryUneven,
       uneven(
           "the loss of an image is multiplied by the weight of its class, inverse to the number of its images.")},
      {"sampler", "\"balanced\"", ratio >= kVeryUneven,
       uneven(
           "an epoch draws every class equally often. Weights would make single steps of a rare class so large that "
           "the training becomes unsteady.")},
      {"optimizer", "\"adamw\"", !is_sgd,
       "AdamW at 0.002 with a one-cycle schedule, as in recipes/mnist.toml, which was tested."},
      {"optimizer", "\"sgd\"", is_tuning,
       "SGD with Nesterov momentum and a one-cycle schedule. The rate is a fifth of what random weights get: larger "
       "steps would undo what the weights know."},
      {"optimizer", "\"sgd\"", true,
       fmt::format(
           "SGD with Nesterov momentum and a one-cycle schedule: the usual rule for this network; a peak of "
           "{:g} was tested with {}{}. With --global-batch 4 times as large, the rate is too.",
           proven, is_small ? "recipes/fruits.toml" : "recipes/caltech256.toml",
           part < 1 ? fmt::format(", here times {} / {:g} for the small batch", batch, kProvenBatch) : "")},
      {"momentum", "0.9", is_sgd, ""},
      {"nesterov", "true", is_sgd, ""},
      {"lr", is_sgd ? fmt::format("{:g}", proven * part) : "0.002", true, ""},
      {"lr-batch", std::to_string(batch), is_sgd, ""},
      {"scale-lr", "\"linear\"", is_sgd, ""},
      {"schedule", "\"one-cycle\"", true,
       "The rate rises for a third of the training and falls to 0, so that the last epochs are spent near the "
       "minimum: the whole length counts, and a training that is stopped early has not reached it."},
      {"weight-decay", "1e-3", is_sgd && facts.train < kFewImages,
       "More than the usual 5e-4, because the images are few."},
      {"weight-decay", "5e-4", is_sgd, "The usual one."},
      {"label-smoothing", "0.1", is_sgd && facts.classes() > 2,
       "Keeps the network from becoming too certain of its training images."},
      {"precision", "\"auto\"", true,
       fmt::format("{} here: {}. Another kind of processor may take the other; weights are fp32 in both.",
                   train::name(machine.precision.precision), machine.precision.reason)},
      {"workers", "1", true,
       fmt::format(
           "One worker uses all cores ({} here). Whether several are faster: paceline scale RECIPE --workers "
           "1,2,4.",
           machine.cores)}};
}

void take(const std::vector<Row>& rows, std::vector<Choice>& choices) {
  for (const auto& [key, value, when, reason] : rows)
    if (when && std::ranges::find(choices, key, &Choice::key) == choices.end())
      choices.push_back({key, value, reason});
}

std::vector<std::string> warnings_of(const DataFacts& facts) {
  constexpr std::int64_t kManyFiles = 20'000, kFewInClass = 10;
  const auto few = std::ranges::count_if(facts.per_class, [](auto count) { return count < kFewInClass; });
  const std::pair<bool, std::string> rows[] = {
      {facts.has_sizes && facts.all() > kManyFiles,
       fmt::format(
           "{} files: a cluster's file system reads one archive faster; paceline data pack {} images.tar",
           facts.all(), facts.spec)},
      {!facts.broken.empty(),
       fmt::format("{} of {} images looked at cannot be decoded, and are left out; the first: {}",
                   facts.broken.size(), facts.looked_at, first_of(facts.broken))},
      {facts.across_parts > 0,
       fmt::format(
           "{} in two parts, such as {}: accuracy on such images does not test what was learned; 'paceline "
           "data verify' lists them",
           base::counted(facts.across_parts, "image is", "images are"), first_of(facts.duplicates))},
      {facts.contradicting > 0,
       fmt::format("{} of the images that come twice stand under two classes", facts.contradicting)},
      {few > 0,
       fmt::format("{} fewer than {} training images, too few to learn {}",
                   base::counted(few, "class has", "classes have"), kFewInClass, few == 1 ? "it" : "them")},
      {few == 0 && data::unevenness(facts.per_class) >= data::kUneven,
       fmt::format(
           "the largest class has {:.1f} times the images of the smallest, for which the recipe makes up; look at the "
           "accuracy of each class and at their mean, paceline evaluate prints both",
           data::unevenness(facts.per_class))}};
  std::vector<std::string> warnings;
  for (const auto& [when, sentence] : rows)
    if (when) warnings.push_back(sentence);
  return warnings;
}

}  // namespace

Proposal propose(const DataFacts& whole, const MachineFacts& machine, const GivenModel& given) {
  const double held_back = held_back_of(whole);
  DataFacts facts = whole;  // as they are trained on: without the images held back
  for (const auto count : whole.per_class)
    facts.train -= std::min<std::int64_t>(count - 1, std::llround(held_back * static_cast<double>(count)));
  const auto batch = batch_for(facts, machine.most_batch);
  const auto epochs = epochs_for(facts, batch, given);
  const auto shape = shape_for(facts, machine, given, epochs);
  const auto mirror = against_mirroring(facts);
  Proposal proposal{.warnings = warnings_of(whole),
                    .is_long = seconds_of(facts, machine, shape.flops, epochs) > 3600};
  auto& options = proposal.options;
  take({row_of_data(facts, shape, given, mirror, options.data)}, proposal.choices);
  const Inputs in{whole, facts, machine, given, shape, held_back, batch, epochs};
  for (const auto& rows : {rows_of_images(in, mirror), rows_of_model(in), rows_of_rule(in)})
    take(rows, proposal.choices);
  options.model = shape.model;
  options.weights = given.weights;
  options.validation_split = held_back;
  options.global_batch = batch;
  options.epochs = epochs;
  return proposal;
}

}  // namespace paceline::init
