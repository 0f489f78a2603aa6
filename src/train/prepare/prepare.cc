#include "train/prepare/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/topology.h"
#include "data/class_balance.h"
#include "graph/initialise.h"
#include "graph/layout.h"
#include "graph/rates.h"
#include "graph/zoo.h"
#include "measure/environment.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/given_weights.h"
#include "train/evaluate.h"
#include "train/given/names.h"
#include "train/prepare/kernels.h"
#include "train/record/run_record.h"
#include "train/step/buckets.h"

namespace paceline::train {
namespace {

/// Samples that share mean and variance, and what they are called.
struct Group {
  std::int64_t samples = 0;
  std::string name;
};

Group group_of(const Options& options, const Resolved& resolved) {
  if (options.batch_norm == engine::BatchNormMode::ghost)
    return {options.ghost_size, fmt::format("--bn ghost:{}", options.ghost_size)};
  if (options.batch_norm == engine::BatchNormMode::synchronised)
    return {resolved.global_batch, fmt::format("a global batch of {}", resolved.global_batch)};
  const char* const what = options.shard > 0         ? "--shard"
                           : options.micro_batch > 0 ? "--micro-batch"
                                                     : "a local batch of";
  return {resolved.engine_batch, fmt::format("{} {}", what, resolved.engine_batch)};
}

/// Number of images in the largest part of `samples` that one rank evaluates.
std::int64_t largest_part(std::int64_t samples, const Options& options, const Resolved& resolved) {
  std::int64_t most = 0;
  for (int rank = 0; rank < resolved.workers; ++rank) {
    const auto part = evaluation_options(options, resolved, samples, rank);
    most = std::max(most, part.end - part.begin);
  }
  return most;
}

/// Why the host must prepare the images, however much device memory there is; empty if it need not.
std::string why_on_host(const Options& options, const data::Source& source) {
  if (is_data_parallel(options)) return "--parallel data-parallel hands them out from worker 0";
  if (source.train->format() != source.evaluated_format()) return "evaluation takes images of another size";
  if (!source.train->reads_from_memory()) return "they are decoded, or come from slow storage, at every read";
  const auto augment = augment_options(options, source);
  if (augment.crop_area > 0) return "crops of any size are cut out of the stored images";
  if (augment.jitter > 0) return "colours are changed";
  if (augment.trivial || augment.erase > 0) return "--trivial-augment and --random-erasing change pixels";
  if (mixes_images(options)) return "--mixup and --cutmix mix them";
  if (!augment.warp.is_none()) return "--rotate, --shear and --shift move the pixels themselves";
  return "";
}

/// What each engine would keep: the training set, and for each set that is evaluated the largest part of a
/// rank.
StoredImages images_to_store(const Options& options, const Resolved& resolved, const data::Source& source) {
  const bool has_validation = source.validation != nullptr;
  StoredImages stored{.train = source.train->size()};
  if (validates(options, has_validation))
    stored.validation = largest_part(source.validation->size(), options, resolved);
  if (reads_test(options, has_validation)) stored.test = largest_part(source.test->size(), options, resolved);
  return stored;
}

using measure::EpochRecord;

/// Mirroring an edge needs the pixels beside it, so the image must be large enough.
void require_mirrored_edge(const Options& options, const data::Source& source) {
  const auto format = source.train->format();
  const int most = std::min(format.height, format.width) - 1;
  const int padding = options.augment ? options.crop_padding.value_or(source.crop_padding) : 0;
  if (options.crop_fill == data::CropFill::reflect && padding > most)
    refuse_options(
        "--crop-fill reflect with --crop-padding {}: an image of {}x{} has only {} beside an edge "
        "to mirror; give a --crop-padding of at most {}, or --crop-fill black",
        padding, format.height, format.width, base::counted(most, "pixel"), most);
  const bool has_validation = source.validation != nullptr;
  const bool evaluates = validates(options, has_validation) || reads_test(options, has_validation);
  if (options.test_views == data::kMostViews && evaluates && most < 1)
    refuse_options(
        "--test-time-augmentation moves test images by a pixel and mirrors their edges, but an image of "
        "{}x{} has no pixel beside an edge; use larger images, or --test-time-augmentation flip",
        format.height, format.width);
}

/// Options that decide by the validation part need such a part, and evaluations of it.
void require_validation(const Options& options, const data::Source& source) {
  const bool plateau = options.schedule.kind == ScheduleKind::plateau;
  if ((options.early_stopping == 0 && !plateau) || options.window_steps != 0) return;
  const auto* asked = plateau ? "--schedule plateau" : "--early-stopping";
  if (source.validation == nullptr)
    refuse_options("{} needs a validation part, but '{}' has none; give one, such as --validation-split 0.1",
                   asked, options.data);
  if (options.evaluate_every == 0)
    refuse_options(
        "{} needs the validation part, but --evaluate-every 0 never evaluates it; give "
        "--evaluate-every 1, and --test-set never if the test set is not to be read",
        asked);
}

void add_identity(const data::DataIdentity& from, measure::Record::Data& to) {
  if (from.classes.empty()) return;
  to.classes = from.classes;
  auto& lists = to.lists_sha256.emplace();
  for (const auto& [part, list] :
       {std::pair{"train", &from.train}, {"validation", &from.validation}, {"test", &from.test}})
    if (!list->sha256.empty()) lists[part] = list->sha256;
}

/// Checkpoints of older versions hold no best epoch: epochs validated before such a checkpoint can no longer
/// be chosen. Returns the warning about it; empty if it does not apply.
std::string forgotten_validation(const Prepared& run, const Options& options) {
  if (!run.resume || !validates(options, run.source.validation != nullptr)) return "";
  if (run.resume->standing.validation.best_update > 0) return "";
  const auto validated = std::ranges::count_if(run.earlier.epochs, [&](const EpochRecord& epoch) {
    return epoch.validation_accuracy && epoch.updates < run.resume->standing.counters.update;
  });
  if (validated == 0) return "";
  return fmt::format(
      "{} was written by a version that kept no best epoch: the {} before it cannot be chosen, and what "
      "depends on the validation part (the best epoch, --early-stopping, --schedule plateau) begins at "
      "epoch {}; to choose among all of them, start a new run",
      run.resume->path.filename().string(), base::counted(validated, "validated epoch"),
      run.resume->standing.counters.epoch + 1);
}

/// --freeze and --lr-factor.
void freeze_layers(const Options& options, graph::Graph& graph) {
  const auto set = [&](const char* option, const std::vector<graph::RateRule>& rules) {
    const std::string unused = graph::set_rates(graph, rules);
    if (unused.empty()) return;
    std::vector<std::string> known;
    for (const graph::Node& node : graph.nodes) {  // layers, and the modules that they are in
      if (node.parameters.empty()) continue;
      for (auto end = node.name.find('.'); end != std::string::npos; end = node.name.find('.', end + 1))
        known.push_back(node.name.substr(0, end));
      known.push_back(node.name);
    }
    refuse_options(
        "{} {}: model '{}' has no layer or parameter of this name{}", option, unused, options.model,
        base::nearest_name(unused, known)
            ? base::suggestion(unused, known)
            : fmt::format("; 'paceline model show {}' lists them", base::shell_word(options.model)));
  };
  const std::int64_t all = graph.trainable_elements();
  set("--freeze", graph::frozen_rules(options.freeze));
  if (!options.freeze.empty() && graph.trainable_elements() == all)
    refuse_options(
        "--freeze {} freezes nothing: a pattern with ! excepts layers from what the patterns before it freeze, such "
        "as '*,!fc'",
        options.freeze);
  set("--lr-factor", graph::factor_rules(options.lr_factor));
}

/// What of the weights is not trained: "frozen: 1824 of 2230277 parameters, 4 of 105 layers as a whole".
std::string sentence_on_frozen(const graph::Graph& graph) {
  std::int64_t all = 0, layers = 0, frozen_layers = 0;
  for (const graph::Node& node : graph.nodes) {
    std::int64_t here = 0, trained = 0;
    for (const int index : node.parameters) {
      const auto& parameter = graph.parameters[static_cast<std::size_t>(index)];
      if (!graph::is_trainable(parameter.role)) continue;
      here += parameter.elements();
      if (!parameter.is_frozen()) trained += parameter.elements();
    }
    all += here;
    layers += here > 0 ? 1 : 0;
    frozen_layers += here > 0 && trained == 0 ? 1 : 0;
  }
  return fmt::format("frozen: {} of {} parameters, {} of {} layers as a whole",
                     all - graph.trainable_elements(), all, frozen_layers, layers);
}

}  // namespace

void require_trainable(const graph::Graph& graph, const Options& options, const Resolved& resolved) {
  if (graph.trainable_elements() == 0)
    refuse_options(
        "model '{}' has no weight that is trained; {}", graph.name,
        options.freeze.empty()
            ? "add a layer that has one, such as dense, or unfreeze one"
            : fmt::format("--freeze {} freezes all: except a layer, as '*,!fc' does", options.freeze));
  const auto group = group_of(options, resolved);
  for (const auto& node : graph.nodes) {
    const auto* norm = node.as<graph::BatchNorm>();
    if (norm == nullptr || norm->is_frozen) continue;
    if (group.samples * node.shape.height * node.shape.width > 1) continue;
    refuse_options(
        "batch_norm '{}': {} gives it one value per channel (images of {}x{} there), whose mean is itself "
        "and whose variance is 0, so that nothing can be learned; take a larger batch, or put the batch "
        "norm before the pooling",
        node.name, group.name, node.shape.height, node.shape.width);
  }
}

PlannedImages plan_images(const Options& options, Resolved& resolved, const RunParts& parts) {
  const auto plan = [&] { return plan_run(options, resolved, parts); };
  resolved.stored = {};
  if (!parts.backend.keeps_images) return {.plan = plan()};
  std::string reason = why_on_host(options, parts.source);
  if (reason.empty()) {
    resolved.stored = images_to_store(options, resolved, parts.source);
    auto planned = plan();
    const auto too_much = excess(planned, parts.limits);
    const std::int64_t images = resolved.stored.total();
    if (too_much.empty())
      return {.plan = std::move(planned),
              .on_device = true,
              .sentence = fmt::format(
                  "images: {} of them lie on the device ({:.1f} MB for each worker); of "
                  "each sample the host sends 20 bytes",
                  images, static_cast<double>(images * parts.source.train->format().bytes()) / 1e6)};
    reason = fmt::format("with {} of them on the device the plan is {}", images, too_much);
    resolved.stored = {};
  }
  return {.plan = plan(), .on_device = false, .sentence = "images: the host prepares them, for " + reason};
}

data::Source open_data(const Options& options, const Backend& backend) {
  auto source = data::open(options.data, {.validation_split = options.validation_split,
                                          .skip_bad_images = options.skip_bad_images,
                                          .needs_test = true,
                                          .threads = base::usable_cores(),
                                          .broken_images = &backend.history->broken_images});
  require_mirrored_edge(options, source);
  require_validation(options, source);
  require_evaluations(options, source.validation != nullptr);
  if (mixes_images(options) && source.train->size() < 2)
    refuse_options(
        "{} mixes pairs of training images, but data '{}' has only one; take more images, or leave it out",
        name_of_mixing(options), options.data);
  if (options.shuffle_window > 0 && source.train->shard_sizes().empty())
    refuse_options(
        "--shuffle window:{}: '{}' is not in shards, of which a window could hold some; leave the option out "
        "(every order of a data set in one place is as fast)",
        options.shuffle_window, options.data);
  return source;
}

RunConditions circumstances_of(const data::Source& source, const Backend& backend) {
  return {.train_samples = source.train->size(),
          .cores = base::usable_cores(),
          .auto_precision = backend.auto_precision,
          .processes = backend.place.processes,
          .sharers = backend.place.core_sharers};
}

graph::Graph make_graph(const Options& options, const data::Source& source) {
  const auto format = source.train->format();
  auto graph = graph::make_model(options.model, {format.channels, format.height, format.width},
                                 source.classes(), options.label_smoothing);
  if (options.zero_gamma && graph::zero_last_gammas(graph) == 0)
    refuse_options("--zero-gamma: model '{}' has no residual block that ends in a batch norm; leave it out",
                   options.model);
  freeze_layers(options, graph);
  if (!options.class_weights.empty())
    graph::set_class_weights(graph, data::class_weights(options.class_weights, source));
  const auto is_norm = [](const graph::Node& node) { return node.as<graph::BatchNorm>() != nullptr; };
  if (options.batch_norm != engine::BatchNormMode::local && std::ranges::none_of(graph.nodes, is_norm))
    refuse_options("--bn {}: model '{}' has no batch norm, so there is nothing to {}; leave it out",
                   name(options.batch_norm, options.ghost_size), options.model,
                   options.batch_norm == engine::BatchNormMode::ghost ? "divide into groups" : "synchronise");
  return graph;
}

namespace {

/// What the sums of sleeping workers take of the processors; empty where nothing is summed or emulated.
std::string real_sums(const Options& options, const Resolved& resolved, const graph::Graph& graph,
                      const Backend& backend) {
  if (options.emulate_compute.empty() || resolved.workers == 1) return "";
  const auto buckets =
      cut_buckets(graph::flat_layout(graph), static_cast<std::int64_t>(options.bucket_mb * 1e6));
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i < buckets.count(); ++i) bytes.push_back(buckets.bytes(i));
  return backend.machine->require_slow_links(resolved.local_workers, bytes);
}

}  // namespace

std::string sentence_on_given_weights(const Options& options, const graph::Graph& graph) {
  if (options.weights.empty()) return "";
  if (!options.resume.empty())
    return fmt::format("the weights are those of the checkpoint, not of --weights {}", options.weights);
  return check_given_weights({options.weights, options.weights_by_order}, graph).sentence;
}

Prepared prepare(const Options& options, const Backend& backend) {
  Prepared run;
  backend.machine->at("the opening of the data");
  run.source = open_data(options, backend);
  backend.machine->at("the planning of the run");
  run.graph = make_graph(options, run.source);
  run.evaluation_graph = make_evaluation_graph(run.graph, run.source);
  const auto given_weights =
      backend.place.is_first() ? sentence_on_given_weights(options, run.graph) : std::string();
  RunParts parts{run.graph, run.source, backend, circumstances_of(run.source, backend), {}};
  run.resolved = resolve(options, parts.conditions);
  require_trainable(run.graph, options, run.resolved);
  // The first process alone compares it. All work it out, so that on a slow disk nobody waits past a
  // deadline.
  if (options.window_steps == 0) run.resolved.data = data::identity_of(run.source, base::usable_cores());
  // The first process reads the checkpoint for all; only its host needs the file.
  if (!options.resume.empty() && backend.place.is_first()) {
    backend.machine->at("the reading of the checkpoint");
    run.resume = find_resume_point(options, run.resolved, run.graph);
    run.is_finished = run.resume->is_finished;
    run.resolved.precision = run.resume->precision;
  }
  if (options.resume_auto) run.is_finished = first_says(backend, run.is_finished);
  if (run.is_finished) return run;
  // Only the first process knows the checkpoint, and on another kind of processor auto may take another one.
  run.resolved.precision = first_says(backend, run.resolved.precision);
  const auto plan_that_fits = [&] {
    parts.limits = memory_limits(backend, run.resolved.local_workers);
    auto planned = plan_images(options, run.resolved, parts);
    require_memory(options, run.resolved, parts, planned.plan, true);
    return planned;
  };
  auto planned = plan_that_fits();
  // Measured only if the plan fits; the plan is then made again for the kernels found.
  const auto kernels = choose_kernels(options, run.resolved, parts, run.evaluation_graph,
                                      run.resume ? run.resume->algorithms : engine::KernelAlgorithms{});
  run.resolved.algorithms = kernels.algorithms;
  const auto sums = real_sums(options, run.resolved, run.graph, backend);
  measure::release_free_memory();  // memory freed by measuring must not count as the process's own
  planned = plan_that_fits();
  backend.machine->at("the preparation of the run");
  run.record = begin_record(options, run.resolved, parts, planned.plan);
  add_identity(run.resolved.data, run.record.data);
  if (planned.on_device) run.record.data.images_on = *planned.on_device ? "device" : "host";
  run.earlier = read_earlier(options, run.resume, run.resolved.global_batch);
  auto& notes = run.record.notes;
  if (kernels.algorithms != nullptr)
    run.record.kernels = {.chosen_by = kernels.chosen_by, .algorithms = *kernels.algorithms};
  if (!given_weights.empty()) notes.push_back(given_weights);
  if (!options.freeze.empty()) notes.push_back(sentence_on_frozen(run.graph));
  if (!options.freeze.empty() && options.weights.empty() && !run.resume)
    notes.emplace_back(
        "--freeze without --weights: what is frozen stays random, batch norms without statistics");
  if (!kernels.note.empty()) notes.push_back(kernels.note);
  if (!options.emulate_compute.empty())
    notes.push_back(fmt::format(
        "--emulate-compute: workers sleep instead of computing ({}), each as if on a node of its own{}",
        options.emulate_compute, sums.empty() ? "" : "; " + sums));
  if (options.no_exchange)
    notes.emplace_back(
        "--control no-exchange: gradients are not summed over workers; a control of the exchange, and no training");
  if (!planned.sentence.empty()) notes.push_back(planned.sentence);
  if (!run.earlier.note.empty()) notes.push_back(run.earlier.note);
  if (run.resume && !run.earlier.damage.empty())
    notes.push_back(fmt::format(
        "the record beside the checkpoint cannot be used ({}): the record of this run has no epochs before "
        "update {}",
        run.earlier.damage, run.resume->standing.counters.update));
  if (!run.earlier.restarts.empty()) run.record.restarts = run.earlier.restarts;
  if (run.resume && !run.earlier.rollbacks.empty()) {
    auto& before = run.record.rollbacks.emplace(run.earlier.rollbacks);
    before.resize(std::min(before.size(), static_cast<std::size_t>(run.resume->standing.guard.rollbacks)));
  }
  if (!run.earlier.changes.empty()) run.record.changes = run.earlier.changes;
  if (options.same_order)
    notes.emplace_back(
        "--emulate-same-order: every epoch has the order of the first, as of a sampler that is not told the epoch; no "
        "result of a sound training");
  const double warmup = options.schedule.warmup_epochs * static_cast<double>(run.resolved.steps_per_epoch);
  if (options.window_steps == 0 && options.epochs == 0 &&  // the command line checks --epochs
      warmup > static_cast<double>(run.resolved.length.updates))
    notes.push_back(fmt::format(
        "--warmup {:g} is {:.0f} steps, and this training has {}: the learning rate never reaches its peak",
        options.schedule.warmup_epochs, warmup, run.resolved.length.updates));
  if (run.source.validation && options.window_steps == 0 && options.evaluate_every == 0)
    notes.push_back(fmt::format(
        "--evaluate-every 0: the {} images of the validation part are held back and never evaluated, so no epoch "
        "is chosen; to leave only the test set alone, give --test-set never instead",
        run.source.validation->size()));
  if (run.resume) notes.insert(notes.end(), run.resume->notes.begin(), run.resume->notes.end());
  if (const auto note = forgotten_validation(run, options); !note.empty()) notes.push_back(note);
  return run;
}

}  // namespace paceline::train
