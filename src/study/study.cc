/// The whole study as one list of cells, and what --quick means.

#include "study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

#include "base/text.h"
#include "base/topology.h"
#include "measure/disturbance.h"
#include "train/prepare/memory.h"

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
  std::string_view word, name;
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
                 .weight_decay = o.rule.weight_decay,
                 .clip_norm = o.rule.clip_norm};
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

bool is_given(const std::vector<measure::Setting>& given, measure::Setting setting) {
  return std::find(given.begin(), given.end(), setting) != given.end();
}

bool is_same_set_up(const PlannedCell& sweep, const PlannedCell& scale) {
  return scale.options.workers == 1 && scale.options.local_batch == sweep.options.local_batch &&
         scale.options.global_batch == 0 && scale.repeat == sweep.repeat;
}

/// One worker with some batch may occur both in the sweep and as the baseline of scaling. If it has the same
/// number of threads in both, the two set-ups agree in everything that can change a figure. It is then
/// measured once, as part of scaling.
void measure_once(std::vector<PlannedCell>& sweep, std::vector<PlannedCell>& scale,
                  const StudyOptions& options, const train::Options& base) {
  if (scale.empty() || options.sweep.repeats != options.scale.repeats) return;
  const int threads = scale.front().options.threads;  // the same in all of them
  // A sweep's worker has all cores for itself.
  if ((base.threads > 0 ? base.threads : cores_of_each(options.scale.cores_each, 1)) != threads) return;
  for (PlannedCell& cell : sweep)
    cell.options.threads = threads;  // the same here, so that all can be compared
  std::erase_if(sweep, [&](const PlannedCell& cell) {
    if (!cell.skip.empty()) return false;
    const auto same = std::find_if(scale.begin(), scale.end(),
                                   [&](const PlannedCell& other) { return is_same_set_up(cell, other); });
    if (same == scale.end()) return false;
    same->also = cell.kind;
    return true;
  });
}

}  // namespace

int cores_of_each(const CoresEach& each, int workers) {
  return each ? each(workers) : base::usable_cores() / workers;
}

train::Options with_smallest_batch(train::Options options) {
  options.local_batch = train::batch_unit(options);
  options.global_batch = 0;
  return options;
}

std::string file_part(std::string_view name, std::string_view kept) {
  std::string text;
  for (const char letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0 || kept.find(letter) != kept.npos)
      text += letter;
    else if (!text.empty() && text.back() != '-')
      text += '-';
  }
  return text;
}

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
      train::refuse_options("has '{}' twice in '{}'; leave one out", piece, words);
    const auto equals = piece.find('=');
    const auto known = std::ranges::find(kRemedies, piece, &Remedy::word);
    std::string said;
    if (known != kRemedies.end()) {
      said = known->name;
    } else if (equals != std::string::npos && equals > 0 && equals + 1 < piece.size()) {
      said = fmt::format("{} {}", piece.substr(0, equals), piece.substr(equals + 1));
    } else {
      const auto near = base::nearest_name(piece, base::texts_of(kRemedies, &Remedy::word));
      train::refuse_options(
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
    if (std::ranges::find(kRemedies, piece, &Remedy::name) != kRemedies.end()) continue;
    const auto change = axes.changes.find(piece);
    if (change == axes.changes.end())
      train::refuse_options("variant '{}' is unknown: '{}' is not a remedy; known are {}", variant, piece,
                            remedy_words());
    change->second(options);
  }
  if (has(pieces, "momentum correction") && options.rule.kind != engine::UpdateKind::lars)
    train::refuse_options(
        "variant '{}': momentum correction changes nothing without LARS; add lars, or leave it out", variant);
}

std::vector<PlannedCell> subset(const std::vector<PlannedCell>& cells,
                                const std::vector<std::size_t>& places) {
  std::vector<PlannedCell> some;
  some.reserve(places.size());
  for (const std::size_t place : places) some.push_back(cells[place]);
  return some;
}

std::vector<measure::Record> run_subset(const std::vector<PlannedCell>& cells,
                                        const std::vector<std::size_t>& places, const Runner& runner) {
  Runner one = runner;
  const auto place_of = [&places](int index) {
    return static_cast<int>(places[static_cast<std::size_t>(index)]);
  };
  if (runner.cell)
    one.cell = [&](int index, int, const std::string& id, Begin how) {
      runner.cell(place_of(index), static_cast<int>(cells.size()), id, how);
    };
  if (runner.together)
    one.together->begin = [&](int index, bool resumed) { runner.together->begin(place_of(index), resumed); };
  return run_cells(subset(cells, places), one);
}

bool was_stopped(const std::vector<measure::Record>& records) {
  return std::ranges::count(records, "interrupted", &measure::Record::status) > 0;
}

void apply_quick(train::Options& base, StudyOptions& options, const std::vector<measure::Setting>& given) {
  options.quick = true;
  if (!is_given(given, "model")) base.model = "resnet8-cifar";
  if (!is_given(given, "window-steps")) base.window_steps = train::Options::kManySteps;
  if (!is_given(given, "warmup-steps")) base.warmup_steps = 1;
  if (!is_given(given, "window-seconds")) base.window_seconds = measure::kKnownWindow_s;
  if (!is_given(given, "repeats")) options.sweep.repeats = options.scale.repeats = 2;
  if (!is_given(given, "batches")) {
    options.sweep.batches = {8, 32, 128, 512};
    options.sweep.automatic_batches = false;
    options.scale.batches = {32, 128, 512};
  }
  if (!is_given(given, "workers")) {
    // Workers that share a core answer no question of this study.
    std::erase_if(options.scale.workers, [&](int workers) {
      return workers > 2 && cores_of_each(options.scale.cores_each, workers) < 1;
    });
  }
  if (!is_given(given, "mode")) options.scale.mode = "both";
  if (!is_given(given, "epochs")) base.epochs = 3;
  if (!is_given(given, "data")) base.data = "synthetic,train=7680,test=2000";
  if (!is_given(given, "baseline-batch")) options.converge.baseline_batch = 64;
  if (!is_given(given, "large-batch")) options.converge.large_batch = 512;
  // The remedies that give back most; each by itself, and all together, are left to `converge`.
  if (options.converge.variants.empty())
    options.converge.variants = {"baseline", "large batch", "+ linear, warm-up", "+ sqrt, warm-up, LARS"};
  // With few updates, a rate that suits a small batch diverges once it is scaled. So begin lower.
  if (!is_given(given, "lr") && !is_given(given, "optimizer")) base.lr = 0.05;
}

std::vector<PlannedCell> study_cells(const train::Options& base, const StudyOptions& options,
                                     const train::Backend& backend) {
  std::vector<PlannedCell> cells;
  const auto append = [&](std::vector<PlannedCell> more) {
    std::move(more.begin(), more.end(), std::back_inserter(cells));
  };
  std::vector<PlannedCell> sweep, scale;
  if (options.with_sweep) {
    train::Options one = base;
    one.workers = 1;
    sweep = sweep_cells(one, options.sweep, backend);
  }
  if (options.with_scale) scale = scale_cells(base, options.scale);
  measure_once(sweep, scale, options, base);
  append(std::move(sweep));
  append(std::move(scale));
  if (options.with_scale && options.with_comm) append(comm_cells(base, options.scale, options.quick));
  if (options.with_converge) append(converge_cells(base, options.converge));
  return cells;
}

}  // namespace paceline::study
