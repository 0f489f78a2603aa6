#include "train/evaluate_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/topology.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/image/encode.h"
#include "data/loader.h"
#include "graph/zoo.h"
#include "measure/environment.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_header.h"
#include "train/evaluate.h"
#include "train/prepare/kernels.h"
#include "train/record/run_record.h"
#include "train/run_ranks.h"

namespace paceline::train {
namespace {

using measure::EvaluationRecord;
using measure::MistakeRecord;
using measure::Record;

/// The result of one sample.
struct Outcome {
  std::int32_t label = 0, predicted = 0;
  bool in_five = false;
  double probability = 0;  ///< of the predicted class
};

/// `logits` [classes]. The first of equal logits counts as the largest, as in the engines' counts.
Outcome outcome_of(std::span<const double> logits, std::int32_t label) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const double logit : logits) total += std::exp(logit - *largest);
  return {.label = label,
          .predicted = static_cast<std::int32_t>(largest - logits.begin()),
          .in_five = is_in_five(logits, label),
          .probability = 1 / total};
}

/// The `most` mistakes with the highest probability; of equal ones the first.
std::vector<MistakeRecord> worst_mistakes(const std::vector<Outcome>& outcomes, const data::Dataset& set,
                                          int most) {
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    if (outcomes[i].predicted != outcomes[i].label) wrong.push_back(i);
  const auto listed = std::min(wrong.size(), static_cast<std::size_t>(most));
  std::ranges::partial_sort(wrong, wrong.begin() + static_cast<std::ptrdiff_t>(listed), {},
                            [&](std::size_t i) { return std::pair(-outcomes[i].probability, i); });
  std::vector<MistakeRecord> mistakes;
  for (std::size_t i = 0; i < listed; ++i) {
    const auto& outcome = outcomes[wrong[i]];
    const auto index = static_cast<std::int64_t>(wrong[i]);
    auto path = set.sample_name(index);
    mistakes.push_back({.index = index,
                        .path = path.empty() ? std::nullopt : std::optional(std::move(path)),
                        .label = outcome.label,
                        .predicted = outcome.predicted,
                        .probability = outcome.probability});
  }
  return mistakes;
}

/// Adds small pictures to the first mistakes, as many as a page shows.
void add_pictures(std::vector<MistakeRecord>& mistakes, const data::Dataset& set) {
  constexpr std::size_t kMost = 24;
  constexpr int kSide = 96;  // pixels
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(set.format().bytes()));
  for (std::size_t i = 0; i < mistakes.size() && i < kMost; ++i) {
    set.read(mistakes[i].index, pixels);
    mistakes[i].picture = data::small_jpeg(set.format(), pixels, kSide);
  }
}

EvaluationRecord summarise(const std::vector<Outcome>& outcomes, const engine::LossSums& sums,
                           const data::Source& source) {
  EvaluationRecord result;
  const auto classes = static_cast<std::size_t>(source.classes());
  result.samples = sums.samples;
  result.loss = sums.loss / static_cast<double>(sums.samples);
  result.correct = sums.correct;
  result.classes = source.class_names;
  result.confusion.assign(classes, std::vector<std::int64_t>(classes, 0));
  for (const auto& outcome : outcomes) {
    ++result.confusion[static_cast<std::size_t>(outcome.label)][static_cast<std::size_t>(outcome.predicted)];
    result.correct_in_5 += outcome.in_five ? 1 : 0;
  }
  return result;
}

/// A set whose labels count other classes than its own: `label_of` [own classes] are the new labels.
class Relabelled final : public data::WrappedDataset {
 public:
  Relabelled(std::unique_ptr<data::Dataset> set, std::vector<std::int32_t> label_of)
      : WrappedDataset(std::move(set)), label_of_(std::move(label_of)) {}
  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    return renamed(set().read(index, pixels));
  }
  std::int32_t read_part(std::int64_t index, const data::ChooseBox& choose,
                         std::span<std::uint8_t> pixels) const override {
    return renamed(set().read_part(index, choose, pixels));
  }
  [[nodiscard]] std::int32_t label(std::int64_t index) const override { return renamed(set().label(index)); }

 private:
  [[nodiscard]] std::int32_t renamed(std::int32_t label) const {
    return label_of_.at(static_cast<std::size_t>(label));
  }

  std::vector<std::int32_t> label_of_;
};

/// Gives `source` the classes of the checkpoint, each label by its name, and adds what is to be said to
/// `notes`.
///
/// Errors   Error(data): it has classes that the checkpoint does not know
void take_classes(const CheckpointInfo& info, data::Source& source, std::vector<std::string>& notes) {
  const auto& known = info.data.classes;
  if (known.empty()) {
    notes.push_back(note_of_no_classes(info.path));
    return;
  }
  const auto given = base::texts_of(source.class_names, [](const auto& name) { return base::visible(name); });
  if (given == known) return;
  std::vector<std::int32_t> label_of;
  for (const auto& name : given)
    label_of.push_back(
        static_cast<std::int32_t>(std::find(known.begin(), known.end(), name) - known.begin()));
  if (std::ranges::count(label_of, static_cast<std::int32_t>(known.size())) > 0)
    base::fail(
        base::ErrorKind::data,
        "{}: it knows the classes {}, but '{}' has {}: {}; rename these folders as in the training, or "
        "move those that it does not know away",
        info.path.string(), some_of(known), source.spec, some_of(given), difference_of_classes(known, given));
  notes.push_back(
      fmt::format("the classes go by their names: of the {} that the checkpoint knows, '{}' has {}; {}",
                  known.size(), source.spec, some_of(given), difference_of_classes(known, given)));
  for (auto* part : {&source.train, &source.validation, &source.test})
    if (*part != nullptr) *part = std::make_unique<Relabelled>(std::move(*part), label_of);
  source.class_names = known;
}

/// Says where the images are not those of the training, or are not seen as they were there.
void compare_images(const CheckpointInfo& info, const data::Source& source, const std::string& part,
                    std::vector<std::string>& notes) {
  const auto& then = info.data;
  if (then.classes.empty()) return;
  data::DataIdentity now;
  now.format = source.train->format();
  now.evaluated = source.evaluated_format();
  now.mean = source.mean;
  now.stddev = source.stddev;
  now.eval_resize = source.eval_resize;
  now.range = source.range;
  if (const auto [here, there] = difference_of_format(then, now); !here.empty())
    notes.push_back(fmt::format("images are {} here; they were {} in the training", here, there));
  const bool is_test = part == "test";
  const auto& list = is_test ? then.test : then.validation;
  const auto& set = is_test ? source.test : source.validation;
  if (set == nullptr || list.sha256.empty()) return;
  if (data::list_sha256(*set, base::usable_cores()) != list.sha256)
    notes.push_back(fmt::format("the list of {} images is another than in the training: {} here, {} there",
                                part, set->size(), list.images));
}

/// Takes the part to evaluate out of `source`, and counts its reads.
std::unique_ptr<data::CountedDataset> take_part(data::Source& source, const EvaluationRequest& request) {
  const bool is_validation = request.part == "validation";
  if (is_validation && source.validation == nullptr)
    refuse_options(
        "--part validation: '{}' has no validation part; give the --validation-split of the training",
        source.spec);
  return std::make_unique<data::CountedDataset>(std::move(is_validation ? source.validation : source.test));
}

/// Keeps only settings on which figures of an evaluation depend.
void keep_own_settings(Record& record) {
  const auto kept = base::words_of(
      "model data device precision test-time-augmentation threads shard validation-split bn label-smoothing "
      "workers local-batch bad-images measured-kernels");
  std::erase_if(record.settings,
                [&](const auto& setting) { return std::ranges::find(kept, setting.first) == kept.end(); });
}

}  // namespace

Options as_evaluated(Options asked) {
  asked.epochs = 0;
  asked.steps = 1;
  asked.global_batch = 0;
  asked.rule = {.momentum = 0, .weight_decay = 0};
  asked.pin = false;
  return asked;
}

graph::MemoryPlan prepare_evaluation(const CheckpointInfo& checkpoint, const Options& options,
                                     Resolved& resolved, const RunParts& parts,
                                     std::vector<std::string>& notes) {
  auto plan = plan_run(options, resolved, parts);
  require_memory(options, resolved, parts, plan, false);
  const auto kernels =
      parts.backend.machine->prepare(parts.graph, planning_options(options, resolved, parts.backend),
                                     kernel_request(options, checkpoint.algorithms));
  resolved.algorithms = kernels.algorithms;
  if (!kernels.passed_over.empty()) notes.push_back(kernels.note);
  return plan;
}

std::unique_ptr<engine::Engine> engine_with_weights(const std::filesystem::path& checkpoint,
                                                    const Options& options, const Resolved& resolved,
                                                    const graph::Graph& graph, const Backend& backend,
                                                    int rank) {
  auto engine = backend.machine->compile(graph, planning_options(options, resolved, backend, rank));
  read_weights(checkpoint, engine->graph(), engine->layout(), engine->weights(), options.use_ema);
  engine->weights_changed();
  return engine;
}

Record evaluate_checkpoint(const Options& asked, const EvaluationRequest& request, const Backend& backend,
                           std::stop_token stop, const Progress& progress) {
  const auto info = read_checkpoint_info(request.checkpoint);
  const Options options = as_evaluated(asked);
  auto source = data::open(options.data, {.validation_split = options.validation_split,
                                          .skip_bad_images = options.skip_bad_images,
                                          .needs_test = true,
                                          .threads = base::usable_cores(),
                                          .broken_images = &backend.history->broken_images});
  std::vector<std::string> notes;
  compare_images(info, source, request.part, notes);
  take_classes(info, source, notes);
  const auto format = source.evaluated_format();
  const auto graph = graph::make_model(options.model, {format.channels, format.height, format.width},
                                       source.classes(), options.label_smoothing);
  const RunConditions conditions{
      // Nothing is trained, so the batch may exceed the training set.
      .train_samples = std::max(source.train->size(), options.local_batch * options.workers),
      .cores = base::usable_cores(),
      .auto_precision = backend.auto_precision};
  auto resolved = resolve(options, conditions);
  resolved.dropped_per_epoch = 0;
  const RunParts parts{graph, source, backend, conditions, memory_limits(backend, resolved.local_workers)};
  const auto plan = prepare_evaluation(info, options, resolved, parts, notes);

  Record record = begin_record(options, resolved, parts, plan);
  record.kind = record.id = "evaluate";
  record.test_set.reset();
  record.learning_rate = {};
  keep_own_settings(record);
  record.notes.insert(record.notes.end(), notes.begin(), notes.end());
  const auto set = take_part(source, request);
  if (progress.say) {
    progress.say(
        fmt::format("{}: {} parameters; {}", options.model, record.model.parameters, source.description));
    progress.say(fmt::format("{}: update {}, on the {} {} images, {}, {}", info.path.string(), info.updates,
                             set->size(), request.part, describe_workers(resolved, backend.place),
                             record.precision));
    for (const auto* said : {&source.notes, &notes})
      for (const auto& note : *said) progress.say(note);
  }

  const data::Augment augment(format, {.mean = source.mean, .stddev = source.stddev});
  data::LoaderPool pool;
  std::vector<Outcome> outcomes(static_cast<std::size_t>(set->size()));
  const auto evaluate_part = [&](int rank) {  // fewer samples if it is asked to stop
    const auto engine = engine_with_weights(info.path, options, resolved, graph, backend, rank);
    engine->warm_up({.views = options.test_views});
    auto loading = evaluation_options(options, resolved, set->size(), rank);
    loading.threads = options.loader_threads;
    loading.pool = &pool;
    loading.passes = 1;
    data::EvaluationBatches batches(*set, augment, loading);
    return evaluate_samples(batches, options.test_views, *engine, stop,
                            [&](std::int64_t index, std::int32_t label, std::span<const double> logits) {
                              outcomes[static_cast<std::size_t>(index)] = outcome_of(logits, label);
                            });
  };
  auto communicators =
      backend.machine->communicators(resolved.local_workers, std::chrono::seconds(options.deadline_s));
  std::vector<engine::LossSums> sums_of_ranks(communicators.size());
  const auto gpu_watch = watch_gpus(backend, resolved.local_workers);
  if (gpu_watch) gpu_watch->begin();
  run_ranks(communicators,
            [&](std::size_t rank) { sums_of_ranks[rank] = evaluate_part(static_cast<int>(rank)); });
  if (gpu_watch) add_gpus(record, std::vector{gpu_watch->end(0)});
  engine::LossSums sums;  // each loss is a multiple of 2^-24: exact in any order
  for (const auto& part : sums_of_ranks) sums += part;
  if (sums.samples < set->size()) {
    record.status = "interrupted";
    record.reason = fmt::format("stopped as asked after {} of {} images", sums.samples, set->size());
    return record;
  }
  record.evaluation = summarise(outcomes, sums, source);
  record.evaluation->checkpoint = info.path.string();
  record.evaluation->updates = info.updates;
  record.evaluation->part = request.part;
  record.evaluation->mistakes = worst_mistakes(outcomes, *set, request.mistakes);
  record.evaluation->reads = set->reads();  // before pictures of some are read, which tests nothing
  add_pictures(record.evaluation->mistakes, *set);
  return record;
}

}  // namespace paceline::train
