#include "train/prepare/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/topology.h"
#include "graph/residual.h"
#include "graph/zoo.h"
#include "measure/environment.h"
#include "train/given/test_policy.h"
#include "train/images/stored_images.h"
#include "train/prepare/kernels.h"
#include "train/prepare/memory.h"
#include "train/prepare/model_check.h"
#include "train/record/run_record.h"

namespace paceline::train {
namespace {

using measure::EpochRecord;

/// Mirroring an edge needs the pixels beside it, so the image must be large enough.
void require_mirrored_edge(const Options& options, const data::Source& source) {
  const auto format = source.train->format();
  const int most = std::min(format.height, format.width) - 1;
  const int padding = options.augment ? options.crop_padding.value_or(source.crop_padding) : 0;
  if (options.crop_fill == data::CropFill::reflect && padding > most)
    base::fail(
        base::ErrorKind::usage,
        "--crop-fill reflect with --crop-padding {}: an image of {}x{} has only {} pixel{} beside an edge "
        "to mirror; give a --crop-padding of at most {}, or --crop-fill black",
        padding, format.height, format.width, most, most == 1 ? "" : "s", most);
  const bool has_validation = source.validation != nullptr;
  const bool evaluates =
      options.window_steps == 0 &&
      (validates(options, has_validation) || test_policy(options, has_validation) != TestSet::never);
  if (options.test_views == data::kMostViews && evaluates && most < 1)
    base::fail(
        base::ErrorKind::usage,
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
    base::fail(base::ErrorKind::usage,
               "{} needs a validation part, but '{}' has none; give one, such as --validation-split 0.1",
               asked, options.data);
  if (options.evaluate_every == 0)
    base::fail(base::ErrorKind::usage,
               "{} needs the validation part, but --evaluate-every 0 never evaluates it; give "
               "--evaluate-every 1, and --test-set never if the test set is not to be read",
               asked);
}

void tell_preparation(const Backend& backend, const char* phase) {
  if (backend.at) backend.at(phase);
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
      run.resume->path.filename().string(),
      validated == 1 ? "one validated epoch" : fmt::format("{} validated epochs", validated),
      run.resume->standing.counters.epoch + 1);
}

}  // namespace

data::Source open_data(const Options& options, const Backend& backend) {
  auto source = data::open(options.data, {.validation_split = options.validation_split,
                                          .skip_bad_images = options.skip_bad_images,
                                          .threads = base::usable_cores(),
                                          .broken_images = &backend.history->broken_images});
  require_mirrored_edge(options, source);
  require_validation(options, source);
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
    base::fail(base::ErrorKind::usage,
               "--zero-gamma: model '{}' has no residual block that ends in a batch norm; leave it out",
               options.model);
  return graph;
}

Prepared prepare(const Options& options, const Backend& backend) {
  Prepared run;
  tell_preparation(backend, "the opening of the data");
  run.source = open_data(options, backend);
  tell_preparation(backend, "the planning of the run");
  run.graph = make_graph(options, run.source);
  const auto circumstances = circumstances_of(run.source, backend);
  run.resolved = resolve(options, circumstances);
  require_trainable(run.graph, options, run.resolved);
  // The first process reads the checkpoint for all; only its host needs the file.
  if (!options.resume.empty() && backend.place.is_first()) {
    tell_preparation(backend, "the reading of the checkpoint");
    run.resume = find_resume_point(options, run.resolved, run.graph);
    run.is_finished = run.resume->is_finished;
    run.resolved.precision = run.resume->precision;
  }
  if (options.resume_auto) run.is_finished = first_says(backend, run.is_finished);
  if (run.is_finished) return run;
  // Only the first process knows the checkpoint, and on another kind of processor auto may take another one.
  run.resolved.precision = first_says(backend, run.resolved.precision);
  MemoryLimits limits;
  const auto plan_that_fits = [&] {
    limits = memory_limits(backend, run.resolved.local_workers);
    auto planned = plan_images(options, run.resolved, run.graph, run.source, backend, limits);
    require_memory(options, run.resolved, run.graph, run.source, backend, circumstances, planned.plan,
                   limits);
    return planned;
  };
  auto planned = plan_that_fits();
  engine::PreparedKernels
      kernels;  // measured only if the plan fits; the plan is then made again for the kernels found
  if (backend.prepare) {
    kernels = backend.prepare(
        run.graph, planning_options(options, run.resolved, backend),
        kernel_request(options, run.resume ? run.resume->algorithms : engine::KernelAlgorithms{}));
    run.resolved.algorithms = kernels.algorithms;
    measure::release_free_memory();  // memory freed by measuring must not count as the process's own
    planned = plan_that_fits();
  }
  tell_preparation(backend, "the preparation of the run");
  run.record = begin_record(options, run.resolved, run.graph, run.source, planned.plan, limits, backend);
  if (planned.on_device) run.record.data.images_on = *planned.on_device ? "device" : "host";
  run.earlier = read_earlier(options, run.resume, run.resolved.global_batch);
  auto& notes = run.record.notes;
  if (kernels.algorithms != nullptr) run.record.kernels = describe(kernels);
  if (!kernels.note.empty()) notes.push_back(kernels.note);
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
