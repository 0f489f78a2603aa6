#include "train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/topology.h"
#include "measure/environment.h"
#include "measure/record_file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/kept_record.h"
#include "train/prepare/kernels.h"
#include "train/prepare/memory.h"
#include "train/prepare/prepare.h"
#include "train/record/evaluations.h"
#include "train/record/run_events.h"
#include "train/record/run_record.h"
#include "train/run_ranks.h"

namespace paceline::train {

namespace {

using measure::EpochRecord;
using measure::Record;

void keep_record(const Options& options, const Record& record) {
  if (!options.out.empty()) measure::write_record(options.out / "record.json", record);
}

std::string trace_of(const WorkerResult& first) {
  std::vector<std::int64_t> bytes;
  for (const auto& bucket : first.buckets) bytes.push_back(bucket.bytes);
  return measure::chrome_trace(first.timelines, bytes);
}

/// Records the time of the first step, and of the restart that led to it.
void note_first_step(Record& record, const Options& options, const Earlier& earlier, double first_step_s) {
  if (first_step_s == 0) return;
  record.first_step_s = first_step_s;
  if (!record.restarts || !earlier.lost_at_s) return;
  const double began = measure::unix_now() - base::seconds_since(options.started);
  record.restarts->back().rebuild_s = began + first_step_s - *earlier.lost_at_s;
}

/// Tells the user from which checkpoint the run continues, and that the earlier run's files stay unless --out
/// names them.
void say_of_resume(const Progress& progress, const Options& options, const ResumePoint& resume,
                   const Resolved& resolved) {
  progress.say(fmt::format("resumed from {}: update {} of {}, step {} of {} in epoch {}",
                           resume.path.string(), resume.standing.counters.update, resolved.end,
                           resume.standing.counters.step, resolved.steps_per_epoch,
                           resume.standing.counters.epoch + 1));
  if (options.out.empty() || goes_on_in_place(options)) return;
  const auto directory = resume.path.has_parent_path() ? resume.path.parent_path() : ".";
  progress.say(
      fmt::format("this run writes to {0}; {1} stays as it is{2}", options.out.string(), directory.string(),
                  options.save_checkpoints
                      ? fmt::format(", and a later --resume {} goes on from here", options.out.string())
                      : ""));
}

/// The record of the epoch with which the checkpoint ended.
std::optional<EpochRecord> last_epoch(const Prepared& run) {
  if (!run.resume || run.earlier.epochs.empty()) return std::nullopt;
  const auto& last = run.earlier.epochs.back();
  const bool is_it = last.updates == run.resume->standing.counters.update &&
                     last.epoch == epoch_number(run.resume->standing.counters);
  return is_it ? std::optional(last) : std::nullopt;
}

/// Renames damaged files of this run's own directory, so that they are neither used nor overwritten.
void set_damaged_aside(const Prepared& run, const Options& options) {
  if (!run.resume || !goes_on_in_place(options)) return;
  for (const auto& path : run.resume->broken) (void)set_aside_damaged(path);
  if (!run.earlier.damage.empty()) (void)set_aside_damaged(options.out / "record.json");
}

/// For --resume auto with a complete training in --out: leaves its record unchanged.
Record leave_finished(const Options& options, const Backend& backend, const Progress& progress) {
  if (!backend.place.is_first()) {
    Record elsewhere;
    elsewhere.status = "complete";
    return elsewhere;
  }
  if (progress.say)
    progress.say(fmt::format("--resume auto: the training in {} is complete; nothing is left to do",
                             options.out.string()));
  return measure::read_record(options.out / "record.json");
}

/// The number of checkpoints that are kept, plus the one being written; 0 if none are written.
int checkpoint_files(const Options& options) {
  if (!options.save_checkpoints || options.window_steps != 0) return 0;
  const bool has_best = options.validation_split > 0, goes_back = options.on_nan == OnNan::rollback;
  return options.keep_checkpoints + 1 + (has_best ? 1 : 0) + (goes_back ? 1 : 0);
}

/// Tells the user about the run before the first step.
void introduce(const Prepared& run, const Options& options, const ProcessPlacement& place,
               const Progress& progress) {
  const Record& record = run.record;
  if (progress.event) {
    progress.event(start_event(record, run.resolved));
    if (run.resume) progress.event(resume_event(*run.resume));
  }
  if (!progress.say) return;
  progress.say(
      fmt::format("{}: {} parameters; {}", options.model, record.model.parameters, run.source.description));
  progress.say(fmt::format("{}, local batch {}, global batch {}, {}", describe_workers(run.resolved, place),
                           run.resolved.local_batch, run.resolved.global_batch, record.precision));
  progress.say(run.resolved.rate.sentence);
  progress.say(describe_memory(record));
  if (const int files = options.out.empty() ? 0 : checkpoint_files(options); files > 0)
    if (const auto lack = lack_of_space(options.out, checkpoint_bytes(run.graph, options), files))
      progress.say(*lack);
  if (run.resume) say_of_resume(progress, options, *run.resume, run.resolved);
  if (run.resume)
    for (const auto& change : run.earlier.changes)
      if (change.update == run.resume->standing.counters.update) progress.say(measure::sentence(change));
  for (const auto& note : record.notes) progress.say(note);
}

/// Fails now, not after hours, if the timeline cannot be written.
void require_timeline(const std::filesystem::path& path) {
  if (path.empty()) return;
  measure::require_output(path, "--timeline");
  if (!base::is_written_in_place(path))  // its reader would take a first write for the whole
    base::write_file(path, std::string_view(measure::chrome_trace({}, {})));
}

/// Writes what a failed run knows: its record in `options.out`; or, if process 0 (which writes the record) is
/// lost, this process's last words in `asked_out`.
void leave_failed(const Options& options, const std::filesystem::path& asked_out, const Record& record,
                  bool first_is_lost) {
  try {
    keep_record(options, record);
    if (first_is_lost) write_lost_rank_0(asked_out, record);
  } catch (const base::Error&) {
    // Most likely a full disk, which also ended the run; the first error is the one to report.
  }
}

void tell_end(const Record& record, const Options& options, const Progress& progress) {
  if (progress.event) progress.event(end_event(record, base::seconds_since(options.started)));
}

/// Joins the record with the runs before this one, and adds sentences on validation and test set, and the
/// options' note.
void conclude(Record& record, const Options& options, const Earlier& earlier, const Progress& progress) {
  record.epochs = joined(earlier.epochs, std::move(record.epochs));
  fill_in_tested(record);
  const auto best = best_epoch(record);
  const auto target = record.status == "complete" ? sentence_on_target(record) : std::string();
  for (const auto& note : {target, best, options.note})
    if (!note.empty()) record.notes.push_back(note);
  for (const auto& note : record.notes)
    if (progress.say && (note == best || note == target || note.starts_with(kStoppedEarly)))
      progress.say(note);
}

/// Resets the peak memory. Returns false, with a note in the record, if that is not possible.
bool start_peak_memory(Record& record) {
  if (measure::reset_peak_memory()) return true;
  record.notes.push_back(
      "peak memory is not measured: the system does not allow its counter to be reset "
      "(/proc/self/clear_refs), so it would include everything before this run");
  return false;
}

/// Runs the workers after preparation. `asked_out`: --out as given to every process.
Record run_prepared(const Options& options, const std::filesystem::path& asked_out, const Backend& backend,
                    std::stop_token stop, const Progress& progress, Prepared& prepared) {
  const ProcessPlacement& place = backend.place;
  const auto& resume = prepared.resume;
  const Earlier& earlier = prepared.earlier;
  Record& record = prepared.record;

  const data::CountedDataset& test_reads = data::count_test_reads(prepared.source);
  RunCounts counts;
  const auto updates_before = resume ? resume->standing.counters.update : 0;
  EvaluationLog evaluations(earlier.evaluations, earlier.epochs, updates_before);
  const auto tell_evaluated = [&](Record& in, std::int64_t elsewhere) {
    tell_evaluations(in, options, evaluations);
    if (in.test_set)
      in.test_set->reads =
          earlier.test_reads + std::max(test_reads.reads() + elsewhere, counts.test_reads_begun.load());
  };
  data::LoaderPool pool;
  // A timed cell is too short to be resumed, and must do nothing besides what is timed.
  const bool is_kept = options.window_steps == 0;
  UpdateCount update_count(is_kept ? options.out : std::filesystem::path());
  Job job{.options = options,
          .resolved = prepared.resolved,
          .graph = prepared.graph,
          .evaluation_graph = prepared.evaluation_graph ? &*prepared.evaluation_graph : nullptr,
          .source = prepared.source,
          .sampler = sampler_of(options, prepared.resolved, prepared.source),
          .backend = backend,
          .progress = progress,
          .stop = stop,
          .resume = resume,
          .last_epoch = last_epoch(prepared),
          .counts = counts,
          .update_count = update_count,
          .test_reads = test_reads,
          .pool = pool,
          .evaluations = evaluations};
  if (options.pin && options.emulate_compute.empty())  // workers that sleep need no core
    job.cores = choose_cores(prepared.resolved, backend, record.notes);
  introduce(prepared, options, place, progress);

  std::vector<EpochRecord> so_far = earlier.epochs;
  if (is_kept && !options.out.empty()) {
    job.keep = [&](const std::vector<EpochRecord>& epochs) {
      Record partial = record;  // what a killed run leaves
      partial.status = "interrupted";
      partial.reason = kNoReportedError;
      note_first_step(partial, options, earlier, counts.first_step_s);
      tell_evaluated(partial, 0);
      partial.epochs = so_far = joined(earlier.epochs, epochs);
      keep_record(options, partial);
    };
  }

  if (place.is_first()) require_timeline(options.timeline);
  // Writes what is known of earlier runs before this run can be lost too.
  if (job.keep && (resume || record.restarts)) job.keep({});
  remove_lost_rank_0(options.out);
  update_count.set(updates_before);

  job.peak_is_ours = start_peak_memory(record);
  const auto gpu_watch = watch_gpus(backend, prepared.resolved.local_workers);
  job.gpu_watch = gpu_watch.get();
  auto communicators = backend.machine->communicators(prepared.resolved.local_workers,
                                                      std::chrono::seconds(options.deadline_s));
  std::string trace;
  try {
    std::vector<WorkerResult> results(communicators.size());
    run_ranks(communicators, [&](std::size_t rank) { results[rank] = work(job, *communicators[rank]); });
    backend.machine->at("the writing of the record");
    if (job.peak_is_ours) record.memory.peak_bytes = measure::peak_resident_bytes();
    backend.history->has_run = true;
    if (place.is_first() && !options.timeline.empty()) trace = trace_of(results.front());
    note_first_step(record, options, earlier, counts.first_step_s);
    complete_record(record, results, *communicators.front());
    tell_evaluated(record, results.front().test_reads_elsewhere);
  } catch (const std::exception& error) {
    record.status = "failed";
    record.reason = error.what();
    if (counts.updates_done > 0) record.updates_done = counts.updates_done;
    const auto loss = backend.machine->lost_rank();
    if (loss) record.loss = loss->record;
    note_first_step(record, options, earlier, counts.first_step_s);
    record.epochs = so_far;
    tell_evaluated(record, 0);
    update_count.forget();
    leave_failed(options, asked_out, record, loss && loss->of_first && !place.is_first());
    tell_end(record, options, progress);
    throw;
  }
  conclude(record, options, earlier, progress);
  keep_record(options, record);
  update_count.forget();
  // After the record, so that a timeline that cannot be written loses no measurement.
  tell_end(record, options, progress);
  if (!trace.empty()) base::write_file(options.timeline, std::string_view(trace));
  return std::move(record);
}

/// inspect(); `opens_all`: also what prepare() opens and refuses.
Setup inspected(const Options& options, const Backend& backend, bool opens_all) {
  const auto source = open_data(options, backend);
  const auto graph = make_graph(options, source);
  const auto conditions = circumstances_of(source, backend);
  auto resolved = resolve(options, conditions);
  if (const auto kept = precision_to_keep(options)) resolved.precision = *kept;
  if (opens_all) {
    require_trainable(graph, options, resolved);
    if (!options.kernels_from.empty()) (void)kernel_request(options, {});
    (void)sentence_on_given_weights(options, graph);
    if (!options.resume.empty()) {
      resolved.data = data::identity_of(source, base::usable_cores());
      (void)find_resume_point(options, resolved, graph);
    }
  }
  const RunParts parts{graph, source, backend, conditions, memory_limits(backend, resolved.local_workers)};
  auto planned = plan_images(options, resolved, parts);
  auto memory = describe(planned.plan, parts.limits);
  memory.plan_lines.clear();
  if (memory.device) memory.device->plan_lines.clear();
  return {.resolved = resolved,
          .excess = excess(planned.plan, parts.limits),
          .plan = std::move(planned.plan),
          .memory = std::move(memory),
          .checkpoint_bytes = checkpoint_files(options) * checkpoint_bytes(graph, options),
          .images = std::move(planned.sentence),
          .model = describe(options, graph, resolved.precision),
          .data = describe(source)};
}

}  // namespace

Setup inspect(const Options& options, const Backend& backend) { return inspected(options, backend, false); }

Setup rehearse(const Options& asked, const Backend& backend) {
  Options options = asked;
  const auto found = options.resume_auto ? find_auto_resume(options) : AutoResume::fresh;
  if (found == AutoResume::finished) return inspect(options, backend);
  if (found == AutoResume::resumed) options.resume = options.out;
  // A run that begins anew by --resume auto makes room for itself.
  if (!options.resume_auto || found == AutoResume::resumed) require_own_directory(options);
  if (!options.timeline.empty()) measure::require_output(options.timeline, "--timeline");
  return inspected(options, backend, true);
}

std::int64_t largest_batch(const Options& options, const Backend& backend) {
  const auto source = open_data(options, backend);
  const auto graph = make_graph(options, source);
  const int local_workers = std::max(1, options.workers / backend.place.processes);
  const RunParts parts{graph, source, backend, circumstances_of(source, backend),
                       memory_limits(backend, local_workers)};
  return largest_local_batch(options, parts, source.train->size() / options.workers);
}

measure::Record run(const Options& asked, const Backend& backend, std::stop_token stop,
                    const Progress& progress) {
  Options options = asked;
  const ProcessPlacement& place = backend.place;
  if (!place.is_first()) options.out.clear();  // the first process writes for all
  auto found = AutoResume::fresh;
  std::vector<std::string> found_notes;
  if (options.resume_auto) {
    if (place.is_first()) found = begin_auto_resume(options, found_notes);
    found = first_says(backend, found);  // other processes may see another disk
    if (found == AutoResume::resumed)
      options.resume = place.is_first() ? options.out : std::filesystem::path("the first process's");
  }
  if (options.started == base::TimePoint{}) options.started = base::Clock::now();
  if (found == AutoResume::finished) return leave_finished(options, backend, progress);
  require_own_directory(options);
  Prepared prepared = prepare(options, backend);
  if (prepared.is_finished) return leave_finished(options, backend, progress);
  prepared.record.notes.insert(prepared.record.notes.begin(), found_notes.begin(), found_notes.end());
  set_damaged_aside(prepared, options);
  return run_prepared(options, asked.out, backend, stop, progress, prepared);
}

}  // namespace paceline::train
