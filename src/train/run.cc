#include "train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/topology.h"
#include "graph/zoo.h"
#include "measure/environment.h"
#include "train/checkpoint.h"
#include "train/job.h"
#include "train/memory.h"
#include "train/worker.h"

namespace paceline::train {
namespace {

using measure::EpochRecord;
using measure::Record;

std::string utc_now() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string describe_plan(const Record& record) {
  return fmt::format("memory: plan {:.2f} GB of {:.2f} GB that this process may use",
                     static_cast<double>(record.memory.plan_bytes) / 1e9,
                     static_cast<double>(record.memory.available_bytes) / 1e9);
}

Record::Model describe(const std::string& model, const graph::Graph& graph) {
  return {.name = model, .parameters = graph.trainable_elements(), .training_flops = graph.training_flops()};
}

Record::Data describe(const data::Source& source) {
  return {.spec = source.spec,
          .name = source.name,
          .description = source.description,
          .synthetic = source.synthetic,
          .train_samples = source.train->size(),
          .test_samples = source.test->size(),
          .validation_samples = source.validation ? std::optional(source.validation->size()) : std::nullopt};
}

std::string describe_workers(const Resolved& resolved) {
  const auto s = [](int count) { return count == 1 ? "" : "s"; };
  return fmt::format("{} worker{} x {} thread{} on {} core{}", resolved.workers, s(resolved.workers),
                     resolved.threads, s(resolved.threads), resolved.cores, s(resolved.cores));
}

/// Everything that is known before the first step.
Record begin_record(const Options& options, const Resolved& resolved, const graph::Graph& graph,
                    const data::Source& source, const graph::MemoryPlan& plan) {
  Record record;
  record.kind = "train";
  record.id = "train";
  record.created = utc_now();
  record.command = options.command;
  record.settings = settings(options);
  record.environment = measure::environment();
  record.model = describe(options.model, graph);
  record.data = describe(source);
  record.data.dropped_per_epoch = resolved.dropped_per_epoch;
  record.data.steps_per_epoch = resolved.steps_per_epoch;
  record.workers = resolved.workers;
  record.threads_per_worker = resolved.threads;
  record.oversubscribed = resolved.oversubscribed;
  record.local_batch = resolved.local_batch;
  record.global_batch = resolved.global_batch;
  record.batch_given_as = resolved.batch_given_as;
  record.precision = resolved.precision == engine::Precision::f32 ? "fp32" : "bf16";
  record.device = options.device;
  record.learning_rate = {.base = resolved.rate.base,
                          .factor = resolved.rate.factor,
                          .peak = resolved.rate.peak,
                          .rule = resolved.rate.rule,
                          .reference_batch = resolved.rate.reference_batch};
  record.memory.plan_bytes = plan.total_bytes();
  for (const auto& line : plan.lines) record.memory.plan_lines[line.purpose] += line.bytes;
  record.memory.available_bytes = usable_memory_bytes();
  record.window = {.unit = options.window_steps > 0 ? "steps" : "epoch",
                   .warmup_steps = options.warmup_steps};
  record.communication.communicator = "none";
  if (resolved.oversubscribed)
    record.notes.push_back(
        fmt::format("{}: oversubscribed, times say nothing about machines with a core for each",
                    describe_workers(resolved)));
  if (options.shard > 0)
    record.notes.push_back(fmt::format(
        "shards of {} samples: the same bits for any number of workers and threads", options.shard));
  for (const auto& note : source.notes) record.notes.push_back(note);
  if (resolved.dropped_per_epoch > 0)
    record.notes.push_back(
        fmt::format("the last {} samples of each epoch's order do not fill a global batch of {} and "
                    "are left out of that epoch (each epoch has another order)",
                    resolved.dropped_per_epoch, resolved.global_batch));
  return record;
}

/// Joins what the workers brought home into the record.
void complete_record(Record& record, std::vector<WorkerResult>& results,
                     const comm::Communicator& communicator) {
  WorkerResult& root = results.front();
  record.status = root.interrupted ? "interrupted" : "complete";
  if (root.interrupted)
    record.reason = fmt::format("stopped as asked after {} updates",
                                root.epochs.empty() ? root.window_steps : root.epochs.back().updates);
  record.window.steps = root.window_steps;
  record.window.samples = root.window_steps * record.global_batch;
  record.window.others_cores = root.others_cores;
  record.first_step_s = root.first_step_s;
  record.epochs = std::move(root.epochs);
  record.steps = std::move(root.steps);
  record.buckets = std::move(root.buckets);
  if (results.size() > 1) {
    record.communication = {.communicator = communicator.name(),
                            .algorithm = communicator.algorithm(),
                            .gradient_bytes = root.gradient_bytes,
                            .bytes_sent = root.traffic.bytes_sent,
                            .collectives = root.traffic.collectives,
                            .memory_ceiling_gb_per_s = root.ceiling_gb_per_s};
  } else {
    record.communication.gradient_bytes = root.gradient_bytes;
  }
  for (auto& note : root.notes) record.notes.push_back(std::move(note));
  for (auto& result : results) {
    record.window.wall_s = std::max(record.window.wall_s, result.rank.wall_s);
    record.ranks.push_back(std::move(result.rank));
  }
}

/// The error that began it: a rank that failed drags the others into comm errors.
std::exception_ptr first_cause(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr consequence;
  for (const auto& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const base::Error& typed) {
      if (typed.kind() != base::ErrorKind::comm) return error;
      if (!consequence) consequence = error;
    } catch (...) {
      return error;
    }
  }
  return consequence;
}

std::string sentence_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown exception";
  }
}

/// Starts a thread a worker, waits for all of them; throws what went wrong first.
std::vector<WorkerResult> run_workers(const Job& job,
                                      std::vector<std::unique_ptr<comm::Communicator>>& communicators) {
  std::vector<WorkerResult> results(communicators.size());
  std::vector<std::exception_ptr> errors(communicators.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          results[rank] = work(job, *communicators[rank]);
        } catch (...) {
          errors[rank] = std::current_exception();
          communicators[rank]->abort(sentence_of(errors[rank]));
        }
      });
    }
  }
  if (const auto cause = first_cause(errors)) std::rethrow_exception(cause);
  return results;
}

void keep_record(const Options& options, const Record& record) {
  if (!options.out.empty()) measure::write_record(options.out / "record.json", record);
}

/// The epochs that the resumed training had already behind it, from the record beside its checkpoint.
std::vector<EpochRecord> earlier_epochs(const std::optional<ResumePoint>& resume) {
  if (!resume) return {};
  const auto path = resume->path.parent_path() / "record.json";
  if (!std::filesystem::exists(path)) return {};
  auto epochs = measure::read_record(path).epochs;
  std::int64_t before = 0;
  for (auto& epoch : epochs) {
    if (!epoch.steps) epoch.steps = epoch.updates - before;
    before = epoch.updates;
  }
  return epochs;
}

/// Two parts of one epoch as one: seconds add up, the training figures are means over both.
EpochRecord joined(const EpochRecord& first, EpochRecord rest) {
  const auto a = static_cast<double>(first.steps.value()), b = static_cast<double>(rest.steps.value());
  rest.seconds += first.seconds;
  rest.train_loss = (a * first.train_loss + b * rest.train_loss) / (a + b);
  rest.train_accuracy = (a * first.train_accuracy + b * rest.train_accuracy) / (a + b);
  rest.steps = first.steps.value() + rest.steps.value();
  return rest;
}

/// What a resumed training had behind it, then what this run did. The epoch that the resume cut is one again
/// where its first part is known; otherwise it stays a part, as its `steps` say.
std::vector<EpochRecord> joined(std::vector<EpochRecord> earlier, std::vector<EpochRecord> here) {
  if (here.empty()) return earlier;
  const std::int64_t begin = here.front().updates - here.front().steps.value();
  // A record may be ahead of its checkpoint: those updates are done again.
  std::erase_if(earlier, [&](const EpochRecord& epoch) { return epoch.updates > begin; });
  if (!earlier.empty() && earlier.back().epoch == here.front().epoch) {
    if (earlier.back().updates == begin) here.front() = joined(earlier.back(), here.front());
    earlier.pop_back();
  }
  earlier.insert(earlier.end(), here.begin(), here.end());
  return earlier;
}

data::Source open_data(const Options& options) {
  return data::open(options.data, {.validation_split = options.validation_split,
                                   .skip_bad_images = options.skip_bad_images,
                                   .threads = base::usable_cores()});
}

/// With a validation set the epoch is chosen there, and the test set only says what that choice is worth.
void note_best_epoch(Record& record, const Progress& progress) {
  const EpochRecord* best = nullptr;
  for (const auto& epoch : record.epochs)
    if (epoch.validation_accuracy && (!best || *epoch.validation_accuracy > *best->validation_accuracy))
      best = &epoch;
  if (best == nullptr || !best->test_accuracy) return;
  record.notes.push_back(fmt::format(
      "best epoch by validation accuracy: {} of {} ({:.2f} % of {} images); its test accuracy is {:.2f} %",
      best->epoch, record.epochs.back().epoch, 100 * *best->validation_accuracy,
      record.data.validation_samples.value_or(0), 100 * *best->test_accuracy));
  if (progress.say) progress.say(record.notes.back());
}

Circumstances circumstances_of(const data::Source& source, const Backend& backend) {
  return {.train_samples = source.train->size(),
          .cores = base::usable_cores(),
          .has_bf16_units = backend.has_bf16_units};
}

graph::Graph make_graph(const Options& options, const data::Source& source) {
  const auto format = source.train->format();
  return graph::make_model(options.model, {format.channels, format.height, format.width}, source.classes(),
                           options.label_smoothing);
}

}  // namespace

Setup inspect(const Options& options, const Backend& backend) {
  const auto source = open_data(options);
  const auto graph = make_graph(options, source);
  const auto circumstances = circumstances_of(source, backend);
  const auto resolved = resolve(options, circumstances);
  const std::int64_t usable = usable_memory_bytes();
  return {.plan = plan_run(options, resolved, graph, source, backend),
          .usable_bytes = usable,
          .model = describe(options.model, graph),
          .data = describe(source)};
}

std::int64_t largest_batch(const Options& options, const Backend& backend) {
  const auto source = open_data(options);
  return largest_local_batch(options, make_graph(options, source), source, backend,
                             circumstances_of(source, backend), usable_memory_bytes(),
                             source.train->size() / options.workers);
}

measure::Record run(const Options& asked, const Backend& backend, std::stop_token stop,
                    const Progress& progress) {
  Options options = asked;
  require_own_directory(options);
  if (options.started == base::TimePoint{}) options.started = base::Clock::now();
  const auto source = open_data(options);
  const auto graph = make_graph(options, source);
  const auto circumstances = circumstances_of(source, backend);
  const auto resolved = resolve(options, circumstances);
  std::optional<ResumePoint> resume;
  if (!options.resume.empty()) resume = find_resume_point(options, resolved);
  auto plan = plan_run(options, resolved, graph, source, backend);
  require_memory(options, resolved, graph, source, backend, circumstances, plan);
  std::string found;  // measured only for what fits; the plan then is that of the kernels found
  if (backend.prepare) {
    found = backend.prepare(graph, compile_options(options, resolved));
    plan = plan_run(options, resolved, graph, source, backend);
    require_memory(options, resolved, graph, source, backend, circumstances, plan);
  }

  Record record = begin_record(options, resolved, graph, source, plan);
  record.environment.libraries = backend.libraries;
  if (!found.empty()) record.notes.push_back(found);
  const auto earlier = earlier_epochs(resume);
  if (resume) record.notes.insert(record.notes.end(), resume->notes.begin(), resume->notes.end());
  Job job{.options = options,
          .resolved = resolved,
          .graph = graph,
          .source = source,
          .backend = backend,
          .progress = progress,
          .stop = stop,
          .resume = resume,
          .cores = {},
          .started = options.started,
          .keep = {}};
  if (options.pin) {
    const auto cores = base::plan_cores(resolved.workers, resolved.threads);
    job.cores = cores.cores;
    record.notes.push_back(cores.note);
  }
  if (progress.say) {
    progress.say(
        fmt::format("{}: {} parameters; {}", options.model, record.model.parameters, source.description));
    progress.say(fmt::format("{}, local batch {}, global batch {}, {}", describe_workers(resolved),
                             resolved.local_batch, resolved.global_batch, record.precision));
    progress.say(resolved.rate.sentence);
    progress.say(describe_plan(record));
    for (const auto& note : record.notes) progress.say(note);
  }

  std::vector<EpochRecord> so_far = earlier;
  if (!options.out.empty() && options.window_steps == 0) {
    job.keep = [&](const std::vector<EpochRecord>& epochs) {
      Record partial = record;
      partial.status = "interrupted";
      partial.reason = "the run ended without a word after this epoch";
      partial.epochs = so_far = joined(earlier, epochs);
      keep_record(options, partial);
    };
  }

  const bool peak_is_ours = measure::reset_peak_memory();
  if (!peak_is_ours)
    record.notes.push_back(
        "peak memory is not measured: the system does not let a process start it anew "
        "(/proc/self/clear_refs), and it would be that of everything before");
  auto communicators = backend.communicators(resolved.workers, std::chrono::seconds(options.deadline_s));
  try {
    auto results = run_workers(job, communicators);
    if (peak_is_ours) record.memory.peak_bytes = measure::peak_resident_bytes();
    remember_run();
    complete_record(record, results, *communicators.front());
  } catch (const std::exception& error) {
    record.status = "failed";
    record.reason = error.what();
    record.epochs = so_far;
    try {
      keep_record(options, record);
    } catch (const base::Error&) {
      // A full disk, most likely the one that ended the run: its first error is the one to tell.
    }
    throw;
  }
  record.epochs = joined(earlier, std::move(record.epochs));
  note_best_epoch(record, progress);
  keep_record(options, record);
  return record;
}

}  // namespace paceline::train
