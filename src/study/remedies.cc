#include "study/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/nearest.h"

namespace paceline::study {
namespace {

/// LARS measures the learning rate in units of |w|/|g|: its base differs from SGD's by about 1/trust.
/// Source   You, Gitman, Ginsburg, "Large batch training of convolutional networks", 2017
constexpr double kLarsRate = 20;

constexpr double kTrainingOverWarmup = 5;

constexpr const char* kBaseline = "baseline";
constexpr const char* kLargeBatch = "large batch";
constexpr const char* kSyncBn = "sync BN";

using train::Options;

void warm_up(Options& options, const ConvergeAxes& axes) {
  options.schedule.warmup_epochs =
      axes.warmup_epochs >= 0 ? axes.warmup_epochs : std::min(1.0, options.epochs / kTrainingOverWarmup);
}

/// One remedy: its name in --variants, its name in tables, and what it changes. In the order of application.
struct Remedy {
  const char* word;
  const char* name;
  void (*apply)(Options& options, const ConvergeAxes& axes);
};

constexpr auto kRemedies = std::to_array<Remedy>({
    {"linear", "linear", [](Options& o, const ConvergeAxes&) { o.scale_lr = train::LrScaling::linear; }},
    {"linear", "linear scaling",
     [](Options& o, const ConvergeAxes&) { o.scale_lr = train::LrScaling::linear; }},
    {"sqrt", "sqrt", [](Options& o, const ConvergeAxes&) { o.scale_lr = train::LrScaling::sqrt; }},
    {"warmup", "warm-up", warm_up},
    {"warmup-from-base", "warm-up from base",
     [](Options& o, const ConvergeAxes& axes) {
       warm_up(o, axes);
       o.schedule.warmup_start = o.lr;
     }},
    {"lars", "LARS",
     [](Options& o, const ConvergeAxes&) {
       o.rule = {.kind = engine::UpdateKind::lars,
                 .momentum = o.rule.momentum,
                 .weight_decay = o.rule.weight_decay};
       o.lr *= kLarsRate;
       if (o.schedule.warmup_start > 0) o.schedule.warmup_start *= kLarsRate;
     }},
    {"momentum-correction", "momentum correction",
     [](Options& o, const ConvergeAxes&) { o.momentum_correction = true; }},
    {"sync-bn", kSyncBn,
     [](Options& o, const ConvergeAxes&) { o.batch_norm = engine::BatchNormMode::synchronised; }},
    {"zero-gamma", "zero gamma", [](Options& o, const ConvergeAxes&) { o.zero_gamma = true; }},
    {"no-decay", "no decay on norm and bias",
     [](Options& o, const ConvergeAxes&) { o.rule.decay_norm_and_bias = false; }},
});

/// "a, b, c" or "a+b+c" at each `separator`.
std::vector<std::string> cut(std::string_view text, std::string_view separator) {
  std::vector<std::string> pieces;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return pieces;
}

/// The pieces of a variant's name: none for the baseline and for the large batch without remedies.
std::vector<std::string> pieces_of(const std::string& variant) {
  constexpr std::string_view kBegin = "+ ";
  if (variant == kBaseline || variant == kLargeBatch) return {};
  return cut(std::string_view(variant).substr(variant.starts_with(kBegin) ? kBegin.size() : 0), ", ");
}

bool has(const std::vector<std::string>& pieces, std::string_view piece) {
  return std::find(pieces.begin(), pieces.end(), piece) != pieces.end();
}

}  // namespace

std::vector<std::string> converge_variants() {
  // Each variant adds one remedy; the last has all of them. LARS already normalises each layer, so its
  // variants scale with the square root only.
  return {kBaseline,
          kLargeBatch,
          "+ linear scaling",
          "+ linear, warm-up",
          "+ sqrt, warm-up, LARS",
          "+ linear, warm-up, sync BN",
          "+ sqrt, warm-up, LARS, sync BN"};
}

std::string remedy_words() {
  std::string text = "plain";
  std::string_view last;
  for (const Remedy& remedy : kRemedies) {
    if (remedy.word != last) text += fmt::format(", {}", remedy.word);
    last = remedy.word;
  }
  return text;
}

std::string variant_name(std::string_view words) {
  if (words == "plain") return kLargeBatch;
  const auto pieces = cut(words, "+");
  if (pieces.size() == 1 && pieces.front() == "linear") return "+ linear scaling";
  std::string name;
  for (const std::string& piece : pieces) {
    if (std::count(pieces.begin(), pieces.end(), piece) > 1)
      base::fail(base::ErrorKind::usage, "has '{}' twice in '{}'; leave one out", piece, words);
    const auto equals = piece.find('=');
    const auto known = std::find_if(kRemedies.begin(), kRemedies.end(),
                                    [&](const Remedy& remedy) { return remedy.word == piece; });
    std::string said;
    if (known != kRemedies.end()) {
      said = known->name;
    } else if (equals != std::string::npos && equals > 0 && equals + 1 < piece.size()) {
      said = fmt::format("{} {}", piece.substr(0, equals), piece.substr(equals + 1));
    } else {
      std::vector<std::string> names;
      for (const Remedy& remedy : kRemedies) names.emplace_back(remedy.word);
      const auto near = base::nearest_name(piece, names);
      base::fail(
          base::ErrorKind::usage,
          "has '{}', which is not a remedy{}; a variant is {} (several joined by +), or an option with its "
          "value, such as linear+warmup+weight-decay=1e-4",
          piece, near ? fmt::format(" (did you mean {}?)", *near) : "", remedy_words());
    }
    name += fmt::format("{}{}", name.empty() ? "+ " : ", ", said);
  }
  return name;
}

bool needs_several_workers(const std::string& variant) { return has(pieces_of(variant), kSyncBn); }

void apply_variant(train::Options& options, const std::string& variant, const ConvergeAxes& axes) {
  const bool is_baseline = variant == kBaseline;
  options.lr_batch = axes.baseline_batch;
  if (is_baseline) options.workers = 1;
  options.local_batch = 0;
  options.global_batch = is_baseline ? axes.baseline_batch : axes.large_batch;
  options.scale_lr = train::LrScaling::none;
  const auto pieces = pieces_of(variant);
  for (const Remedy& remedy : kRemedies)
    if (has(pieces, remedy.name)) remedy.apply(options, axes);
  for (const std::string& piece : pieces) {
    if (std::any_of(kRemedies.begin(), kRemedies.end(),
                    [&](const Remedy& remedy) { return remedy.name == piece; }))
      continue;
    const auto change = axes.changes.find(piece);
    if (change == axes.changes.end())
      base::fail(base::ErrorKind::usage, "variant '{}' is unknown: '{}' is not a remedy; known are {}",
                 variant, piece, remedy_words());
    change->second(options);
  }
  if (has(pieces, "momentum correction") && options.rule.kind != engine::UpdateKind::lars)
    base::fail(base::ErrorKind::usage,
               "variant '{}': momentum correction changes nothing without LARS; add lars, or leave it out",
               variant);
}

}  // namespace paceline::study
