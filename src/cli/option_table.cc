/// The rows. Each is read as: name, how its value is written, heading, help, commands, reader, present value.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "base/error.h"
#include "cli/options.h"
#include "cli/values.h"
#include "train/names.h"

namespace paceline::cli {
namespace {

using train::Options;

constexpr int kManyWorkers = 4096;
constexpr auto kLargestBatch = std::int64_t{1} << 31;

std::string yes_no(bool value) { return value ? "true" : "false"; }
std::string whole(std::int64_t value) { return std::to_string(value); }
/// 0 means "not set" for most counts: shown as no default.
std::string whole_or_none(std::int64_t value) { return value == 0 ? "" : whole(value); }

/// The usual values of an optimizer, so that --optimizer adam alone is a sensible training: PyTorch's
/// defaults, and for sgd and lars those of the ResNet literature.
void choose_optimizer(Options& options, engine::UpdateKind kind) {
  using engine::UpdateKind;
  engine::UpdateRule rule{.kind = kind};
  switch (kind) {
    case UpdateKind::sgd:
      rule.momentum = 0.9;
      rule.weight_decay = 5e-4;
      options.lr = 0.1;
      break;
    case UpdateKind::lars:
      rule.momentum = 0.9;
      rule.weight_decay = 5e-4;
      options.lr = 1;
      break;
    case UpdateKind::adam:
      options.lr = 1e-3;
      break;
    case UpdateKind::adamw:
      rule.weight_decay = 1e-2;
      options.lr = 1e-3;
      break;
    case UpdateKind::rmsprop:
      options.lr = 1e-3;
      break;
    case UpdateKind::adadelta:
      rule.epsilon = 1e-6;
      options.lr = 1;
      break;
  }
  options.rule = rule;
}

void choose_batch_norm(Options& options, std::string_view text) {
  constexpr std::string_view kGhost = "ghost:";
  if (text.starts_with(kGhost)) {
    options.batch_norm = engine::BatchNormMode::ghost;
    options.ghost_size = static_cast<int>(whole_number(text.substr(kGhost.size()), 1, 1 << 20));
    return;
  }
  const std::vector<std::string> names{"local", "sync", "ghost:N"};
  const auto chosen = one_of(text, names);
  if (chosen == 2)
    base::fail(base::ErrorKind::usage, "must give a number for N, such as ghost:32, got '{}'", text);
  options.batch_norm = chosen == 0 ? engine::BatchNormMode::local : engine::BatchNormMode::synchronised;
}

void choose_batches(Settings& settings, std::string_view text) {
  for (auto* axes : {&settings.study.sweep, &settings.study.scale}) {
    axes->automatic_batches = text == "auto";
    if (!axes->automatic_batches) axes->batches = whole_numbers(text, 1, kLargestBatch);
  }
}

void choose_worker_list(Settings& settings, std::string_view text) {
  settings.study.scale.workers.clear();
  for (const auto count : whole_numbers(text, 1, kManyWorkers))
    settings.study.scale.workers.push_back(static_cast<int>(count));
}

template <typename Value, typename Find>
Value named(std::string_view text, const std::vector<std::string>& names, Find find) {
  return *find(names[one_of(text, names)]);
}

int small(std::string_view text, std::int64_t least, std::int64_t most = std::numeric_limits<int>::max()) {
  return static_cast<int>(whole_number(text, least, most));
}

const std::vector<std::string> kPrecisions{"auto", "fp32", "bf16"};
const std::vector<std::string> kDevices{"cpu", "reference"};
const std::vector<std::string> kModes{"weak", "strong", "both"};

constexpr const char* kWhat = "What is trained, on what";
constexpr const char* kWho = "How much at a time, by whom";
constexpr const char* kLong = "How long";
constexpr const char* kRule = "The rule";
constexpr const char* kCells = "What is varied and timed";
constexpr const char* kOutput = "What is left behind";
constexpr unsigned kStudies = kRuns & ~kTrain;
constexpr unsigned kTrainings = kTrain | kConverge;  ///< accuracy counts: whole trainings, not timed cells

// The readers are lambdas without captures: S is the settings, t the text.
#define SET [](Settings & s, std::string_view t)
#define GET [](const Settings& s) -> std::string

std::vector<Option> make_table() {
  return {{"model", "NAME|FILE", kWhat,
           "resnet18-cifar, resnet18, resnet8-cifar, mnist-cnn, or a TOML file of layers", kRuns,
           SET{s.train.model = t;
}
, GET { return s.train.model; }
}  // namespace
, {"data", "SPEC", kWhat,
   "cifar10:DIR (with ,test=FILE another test file), mnist:DIR, or synthetic, which needs no files", kRuns,
   SET{s.train.data = t;
}  // namespace paceline::cli
, GET { return s.train.data; }
}
, {"device", "NAME", kWhat, "cpu, or reference: plain loops, slow, to compare with", kRuns,
   SET{s.train.device = kDevices[one_of(t, kDevices)];
}
, GET { return s.train.device; }
}
, {"precision", "P", kWhat,
   "fp32, bf16 (fp32 master weights), or auto: bf16 where the processor has units for it; the record says "
   "which",
   kRuns, SET{s.train.precision = kPrecisions[one_of(t, kPrecisions)];
}
, GET { return s.train.precision; }
}
, {"seed", "N", kWhat, "of weights, order, augmentation and dropout; the same seed gives the same run", kRuns,
   SET{s.train.seed = static_cast<std::uint64_t>(whole_number(t, 0));
}
, GET { return std::to_string(s.train.seed); }
}
, {"augment", "", kWhat, "the data set's usual random crop and flip", kRuns, SET{s.train.augment = truth(t);
}
, GET { return yes_no(s.train.augment); }
}
, {"label-smoothing", "X", kWhat, "part of the target spread evenly over all classes", kRuns,
   SET{s.train.label_smoothing = decimal(t, {.least = 0, .most = 0.999});
}
, GET { return as_text(s.train.label_smoothing); }
}
,

    {"workers", "N", kWho, "workers that share every global batch", kTrain | kSweep | kConverge,
     SET{s.train.workers = small(t, 1, kManyWorkers);
}
, GET { return whole(s.train.workers); }
}
, {"workers", "LIST", kWho, "numbers of workers to compare, such as 1,2,4", kScale | kStudy,
   SET{choose_worker_list(s, t);
}
, GET { return fmt::format("{}", fmt::join(s.study.scale.workers, ",")); }
}
, {"threads", "N", kWho, "cores a worker computes with; 0: the machine's, shared out", kRuns,
   SET{s.train.threads = small(t, 0, kManyWorkers);
}
, GET { return whole(s.train.threads); }
}
, {"local-batch", "b", kWho,
   "samples a worker and step; the global batch is this times the workers (default 128)", kTrain,
   SET{s.train.local_batch = whole_number(t, 1, kLargestBatch);
}
, GET { return whole_or_none(s.train.local_batch); }
, "global-batch"
}
, {"global-batch", "B", kWho, "samples a step, of all workers together", kTrain,
   SET{s.train.global_batch = whole_number(t, 1, kLargestBatch);
}
, GET { return whole_or_none(s.train.global_batch); }
, "local-batch"
}
, {"shard", "s", kWho,
   "cut the global batch into shards of s samples: then any number of workers gives the same bits; slower",
   kRuns, SET{s.train.shard = whole_number(t, 1, kLargestBatch);
}
, GET { return whole_or_none(s.train.shard); }
}
, {"bn", "MODE", kWho,
   "which samples share batch-norm statistics: local (a worker's), sync (all workers'), ghost:N (groups of "
   "N)",
   kRuns, SET{choose_batch_norm(s.train, t);
}
, GET { return train::name(s.train.batch_norm, s.train.ghost_size); }
}
, {"pin", "", kWho, "tie each worker to cores of its own, where the machine allows", kRuns,
   SET{s.train.pin = truth(t);
}
, GET { return yes_no(s.train.pin); }
}
, {"loader-threads", "N", kWho, "threads a worker that prepare batches while it computes", kRuns,
   SET{s.train.loader_threads = small(t, 1, kManyWorkers);
}
, GET { return whole(s.train.loader_threads); }
}
, {"bucket-mb", "X", kWho,
   "gradients reduced at a time, in 1e6 bytes; smaller overlaps more and costs more calls", kRuns,
   SET{s.train.bucket_mb = decimal(t, {.least = 0, .open_below = true});
}
, GET { return as_text(s.train.bucket_mb); }
}
, {"deadline", "SECONDS", kWho, "a reduction that takes longer is an error: a worker is lost", kRuns,
   SET{s.train.deadline_s = small(t, 1);
}
, GET { return whole(s.train.deadline_s); }
}
,

    {"epochs", "E", kLong, "passes over the training set, 0.5 allowed (default 1)", kTrainings | kStudy,
     SET{s.train.epochs = decimal(t, {.open_below = true});
}
, GET { return s.train.epochs == 0 ? "" : as_text(s.train.epochs); }
, "steps"
}
, {"steps", "S", kLong, "updates", kTrainings, SET{s.train.steps = whole_number(t, 1);
}
, GET { return whole_or_none(s.train.steps); }
, "epochs"
}
, {"evaluate-every", "N", kLong, "epochs between evaluations on the test set; 0: never", kTrainings,
   SET{s.train.evaluate_every = small(t, 0);
}
, GET { return whole(s.train.evaluate_every); }
}
,

    {"optimizer", "NAME", kRule,
     "sgd, adam, adamw, rmsprop, adadelta or lars; each brings its usual lr, momentum and weight decay",
     kRuns,
     SET{choose_optimizer(s.train,
                          named<engine::UpdateKind>(t, train::update_kind_names(), train::update_kind));
}
, GET { return std::string(train::name(s.train.rule.kind)); }
}
, {"lr", "X", kRule, "learning rate at the peak of the schedule, before --scale-lr", kRuns,
   SET{s.train.lr = decimal(t, {.open_below = true});
}
, GET { return as_text(s.train.lr); }
}
, {"momentum", "X", kRule, "of sgd, lars and rmsprop", kRuns,
   SET{s.train.rule.momentum = decimal(t, {.least = 0, .most = 0.9999});
}
, GET { return as_text(s.train.rule.momentum); }
}
, {"nesterov", "", kRule, "momentum that looks ahead (sgd)", kRuns, SET{s.train.rule.nesterov = truth(t);
}
, GET { return yes_no(s.train.rule.nesterov); }
}
, {"weight-decay", "X", kRule, "pull of every weight towards 0", kRuns,
   SET{s.train.rule.weight_decay = decimal(t);
}
, GET { return as_text(s.train.rule.weight_decay); }
}
, {"decay-norm-and-bias", "", kRule, "weight decay on biases and batch norm too (lars: never)", kRuns,
   SET{s.train.rule.decay_norm_and_bias = truth(t);
}
, GET { return yes_no(s.train.rule.decay_norm_and_bias); }
}
, {"beta1", "X", kRule, "adam, adamw: memory of the gradient", kRuns,
   SET{s.train.rule.beta1 = decimal(t, {.least = 0, .most = 0.999999});
}
, GET { return as_text(s.train.rule.beta1); }
}
, {"beta2", "X", kRule, "adam, adamw: memory of its square", kRuns,
   SET{s.train.rule.beta2 = decimal(t, {.least = 0, .most = 0.999999});
}
, GET { return as_text(s.train.rule.beta2); }
}
, {"alpha", "X", kRule, "rmsprop: memory of the squared gradient", kRuns,
   SET{s.train.rule.alpha = decimal(t, {.least = 0, .most = 0.999999});
}
, GET { return as_text(s.train.rule.alpha); }
}
, {"rho", "X", kRule, "adadelta: memory of both squares", kRuns,
   SET{s.train.rule.rho = decimal(t, {.least = 0, .most = 0.999999});
}
, GET { return as_text(s.train.rule.rho); }
}
, {"epsilon", "X", kRule, "adam, adamw, rmsprop, adadelta: keeps the division finite", kRuns,
   SET{s.train.rule.epsilon = decimal(t, {.open_below = true});
}
, GET { return as_text(s.train.rule.epsilon); }
}
, {"trust", "X", kRule, "lars: the layer's step as a part of its weights", kRuns,
   SET{s.train.rule.trust = decimal(t, {.open_below = true});
}
, GET { return as_text(s.train.rule.trust); }
}
, {"schedule", "KIND", kRule, "constant, step, cosine or one-cycle", kRuns,
   SET{s.train.schedule.kind =
           named<train::ScheduleKind>(t, train::schedule_kind_names(), train::schedule_kind);
}
, GET { return std::string(train::name(s.train.schedule.kind)); }
}
, {"warmup", "EPOCHS", kRule, "linear rise of the learning rate in front of any schedule", kRuns,
   SET{s.train.schedule.warmup_epochs = s.study.converge.warmup_epochs = decimal(t);
}
, GET {
  return as_text(s.command == kConverge ? s.study.converge.warmup_epochs : s.train.schedule.warmup_epochs);
}
}
, {"step-epochs", "E", kRule, "step: every so many epochs ...", kRuns,
   SET{s.train.schedule.step_epochs = decimal(t, {.open_below = true});
}
, GET { return as_text(s.train.schedule.step_epochs); }
}
, {"step-factor", "X", kRule, "step: ... the learning rate times this", kRuns,
   SET{s.train.schedule.step_factor = decimal(t, {.open_below = true});
}
, GET { return as_text(s.train.schedule.step_factor); }
}
, {"final-factor", "X", kRule, "cosine, one-cycle: the last learning rate as a part of the peak", kRuns,
   SET{s.train.schedule.final_factor = decimal(t, {.least = 0, .most = 1});
}
, GET { return as_text(s.train.schedule.final_factor); }
}
, {"one-cycle-peak", "X", kRule, "one-cycle: part of the training at which the peak stands", kRuns,
   SET{s.train.schedule.one_cycle_peak = decimal(t, {.least = 0, .most = 1});
}
, GET { return as_text(s.train.schedule.one_cycle_peak); }
}
, {"one-cycle-start", "X", kRule, "one-cycle: the first learning rate as a part of the peak", kRuns,
   SET{s.train.schedule.one_cycle_start = decimal(t, {.least = 0, .most = 1});
}
, GET { return as_text(s.train.schedule.one_cycle_start); }
}
, {"scale-lr", "RULE", kRule,
   "learning rate times (global batch / --lr-batch): linear, its root: sqrt, or none", kRuns,
   SET{s.train.scale_lr = named<train::LrScaling>(t, train::lr_scaling_names(), train::lr_scaling);
}
, GET { return std::string(train::name(s.train.scale_lr)); }
}
, {"lr-batch", "B", kRule, "the global batch that --lr belongs to (default 128)", kRuns,
   SET{s.train.lr_batch = whole_number(t, 1, kLargestBatch);
}
, GET { return whole_or_none(s.train.lr_batch); }
}
,

    {"batches", "LIST|auto", kCells,
     "batch sizes to compare, such as 32,128,512; auto: doubled until memory or the data set ends (sweep)",
     kSweep | kScale | kStudy, SET{choose_batches(s, t);
}
, GET { return fmt::format("{}", fmt::join(s.study.scale.batches, ",")); }
}
, {"mode", "MODE", kCells,
   "weak: --batches are local, the global batch grows with the workers; strong: they are global; or both",
   kScale | kStudy, SET{s.study.scale.mode = kModes[one_of(t, kModes)];
}
, GET { return s.study.scale.mode; }
}
, {"repeats", "N", kCells, "times that every cell is run, interleaved; an interval needs at least 3",
   kStudies, SET{s.study.sweep.repeats = s.study.scale.repeats = s.study.converge.repeats = small(t, 1, 1000);
}
, GET { return whole(s.command == kConverge ? s.study.converge.repeats : s.study.scale.repeats); }
}
, {"window-steps", "K", kCells, "time K steps instead of a whole epoch (train: and stop)",
   kTrain | kSweep | kScale | kStudy, SET{s.train.window_steps = whole_number(t, 1);
}
, GET { return s.train.window_steps > 0 ? whole(s.train.window_steps) : ""; }
}
, {"warmup-steps", "K", kCells, "steps before the clock starts", kTrain | kSweep | kScale | kStudy,
   SET{s.train.warmup_steps = whole_number(t, 0);
}
, GET { return whole(s.train.warmup_steps); }
}
, {"cell-seconds", "X", kCells, "a cell that would take longer times fewer steps; 0: no limit",
   kSweep | kScale | kStudy, SET{s.study.sweep.cell_seconds = s.study.scale.cell_seconds = decimal(t);
}
, GET { return as_text(s.study.scale.cell_seconds); }
}
, {"baseline-batch", "B", kCells, "converge: the global batch that the others are compared with",
   kConverge | kStudy, SET{s.study.converge.baseline_batch = whole_number(t, 1, kLargestBatch);
}
, GET { return whole(s.study.converge.baseline_batch); }
}
, {"large-batch", "B", kCells, "converge: the large global batch whose accuracy is to be kept",
   kConverge | kStudy, SET{s.study.converge.large_batch = whole_number(t, 1, kLargestBatch);
}
, GET { return whole(s.study.converge.large_batch); }
}
, {"quick", "", kCells, "sizes that end within five minutes on two cores", kStudy,
   SET{s.study.quick = truth(t);
}
, GET { return yes_no(s.study.quick); }
}
, {"with-sweep", "", kCells, "the batch sizes on one worker", kStudy, SET{s.study.with_sweep = truth(t);
}
, GET { return yes_no(s.study.with_sweep); }
}
, {"with-scale", "", kCells, "the numbers of workers", kStudy, SET{s.study.with_scale = truth(t);
}
, GET { return yes_no(s.study.with_scale); }
}
, {"with-converge", "", kCells, "what a large batch does to the accuracy", kStudy,
   SET{s.study.with_converge = truth(t);
}
, GET { return yes_no(s.study.with_converge); }
}
,

    {"out", "DIR", kOutput,
     "directory for records, checkpoints and reports; study goes on with what is there", kRuns,
     SET{s.train.out = t;
}
, GET { return s.train.out.string(); }
}
, {"resume", "PATH", kOutput, "go on from a checkpoint: the file, or a directory whose newest is taken",
   kTrain, SET{s.train.resume = t;
}
, GET { return s.train.resume.string(); }
}
, {"checkpoints", "", kOutput, "write checkpoints (into --out)", kTrain,
   SET{s.train.save_checkpoints = truth(t);
}
, GET { return yes_no(s.train.save_checkpoints); }
}
, {"checkpoint-every", "N", kOutput, "epochs between checkpoints", kTrain,
   SET{s.train.checkpoint_every = small(t, 1);
}
, GET { return whole(s.train.checkpoint_every); }
}
, {"log-steps", "", kOutput, "keep the loss of every step in the record", kTrainings,
   SET{s.train.log_steps = truth(t);
}
, GET { return yes_no(s.train.log_steps); }
}
, {"json", "", kOutput,
   "the record (a list, where there are several) alone on standard output, all else on standard error", kRuns,
   SET{s.json = truth(t);
}
, GET { return yes_no(s.json); }
}
,

    {"html", "FILE", kOutput, "one self-contained page", kReport, SET{s.report.html = t;
}
, GET { return s.report.html.string(); }
, "", false
}
, {"markdown", "FILE", kOutput, "the tables as Markdown", kReport, SET{s.report.markdown = t;
}
, GET { return s.report.markdown.string(); }
, "", false
}
, {"csv", "DIR", kOutput, "a CSV file a table", kReport, SET{s.report.csv = t;
}
, GET { return s.report.csv.string(); }
, "", false
}
, {"json", "FILE", kOutput, "the report as JSON, as the page reads it", kReport, SET{s.report.json = t;
}
, GET { return s.report.json.string(); }
, "", false
}
, {"kernels", "", kOutput, "which implementation each op gets, and why the others were refused", kDoctor,
   SET{s.doctor.kernels = truth(t);
}
, GET { return yes_no(s.doctor.kernels); }
, "", false
}
,
}
;
}
#undef SET
#undef GET

}  // namespace

const std::vector<Option>& options() {
  static const std::vector<Option> table = make_table();
  return table;
}

}  // namespace paceline::cli
