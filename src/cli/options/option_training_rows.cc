/// The rows of options about one training: model, data, batch, workers, length.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "cli/options/option_rows.h"
#include "data/dataset.h"
#include "graph/zoo.h"
#include "train/given/names.h"

namespace paceline::cli {

// The table as a whole, in the order in which values are set.

const std::vector<Option>& options() {
  static const std::vector<Option> table = [] {
    std::vector<Option> joined;
    for (const auto rows : {training_rows(), rule_rows(), launch_rows(), study_rows()})
      joined.insert(joined.end(), rows.begin(), rows.end());
    return joined;
  }();
  return table;
}

namespace {

using train::Options;

const std::vector<std::string> kPrecisions{"auto", "fp32", "bf16"};
const std::vector<std::string> kDevices{"cpu", "reference", "cuda", "cuda:K", "cuda-on-host"};
const std::vector<std::string> kBadImages{"error", "skip"};

constexpr const char* kWhat = "What is trained, on what";
constexpr const char* kWho = "Batches, workers and execution";
constexpr const char* kHowLong = "How long";

constexpr int kMostPadding = 1024;

/// `text`, if it is one of `names`; otherwise fails.
std::string known(std::string_view text, const std::vector<std::string>& names) {
  return names[one_of(text, names)];
}

std::string device_named(std::string_view text) {
  constexpr std::string_view kNumbered = "cuda:";
  constexpr int kMostGpus = 64;  // of one host
  if (text.starts_with(kNumbered))
    return fmt::format("cuda:{}",
                       whole_number_in(text, "K", text.substr(kNumbered.size()), 0, kMostGpus - 1));
  if (text.starts_with("gpu"))
    base::fail(base::ErrorKind::usage, "must be one of {}, got '{}': GPUs are called cuda here",
               fmt::join(kDevices, ", "), text);
  return known(text, kDevices);
}

void choose_batch_norm(Options& options, std::string_view text) {
  constexpr std::string_view kGhost = "ghost:";
  if (text.starts_with(kGhost)) {
    options.batch_norm = engine::BatchNormMode::ghost;
    options.ghost_size = static_cast<int>(whole_number_in(text, "N", text.substr(kGhost.size()), 1, 1 << 20));
    return;
  }
  const std::vector<std::string> names{"local", "sync", "ghost:N"};
  const auto chosen = one_of(text, names);
  options.batch_norm = chosen == 0 ? engine::BatchNormMode::local : engine::BatchNormMode::synchronised;
}

void choose_worker_list(Settings& settings, std::string_view text) {
  settings.study.scale.workers.clear();
  for (const auto count : whole_numbers(text, 1, kManyWorkers))
    settings.study.scale.workers.push_back(static_cast<int>(count));
}

std::string models_in_words() {
  return fmt::format("{}, or a TOML file of layers", fmt::join(graph::model_names(), ", "));
}

/// "cifar10:DIR (CIFAR-10, ...); mnist:DIR (...); ...".
std::string formats_in_words() {
  std::string text;
  for (const auto& format : data::known_formats())
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", format.spec(), format.summary);
  return text + "; the keys that each takes after a comma are in docs/formats.md";
}

constexpr Option kTrainingRows[] = {
    {"model", "NAME|FILE", kWhat, models_in_words, kRuns | kEvaluate, [](S& s, Text t) { s.train.model = t; },
     [](const S& s) { return s.train.model; }},
    {"data", "SPEC", kWhat, formats_in_words, kRuns | kEvaluate, [](S& s, Text t) { s.train.data = t; },
     [](const S& s) { return s.train.data; }},
    {"device", "NAME", kWhat,
     "cpu; cuda: GPUs, worker i of a host uses the visible GPU number i modulo their count; cuda:K: "
     "GPU K for all workers; cuda-on-host: the CUDA engine on the processor, slow, to try it without "
     "a GPU; reference: plain loops, slow, for comparison",
     kRuns | kDoctor | kEvaluate | kComm, [](S& s, Text t) { s.train.device = device_named(t); },
     [](const S& s) { return s.train.device; }},
    {"precision", "P", kWhat,
     "fp32, bf16 (fp32 master weights), or auto: with --resume that of the checkpoint, else bf16 on GPUs and on "
     "kinds of processors on which it was measured to be faster; the record says which",
     kRuns | kDoctor | kEvaluate,
     [](S& s, Text t) { s.train.precision = kPrecisions[one_of(t, kPrecisions)]; },
     [](const S& s) { return s.train.precision; }},
    {"seed", "N", kWhat, "seed of weights, order, augmentation and dropout; the same seed gives the same run",
     kRuns, [](S& s, Text t) { s.train.seed = static_cast<std::uint64_t>(whole_number(t, 0)); },
     [](const S& s) { return std::to_string(s.train.seed); }},
    {"augment", "", kWhat, "the data set's usual random crop and flip", kRuns,
     [](S& s, Text t) { s.train.augment = truth(t); }, [](const S& s) { return yes_no(s.train.augment); }},
    {"crop-padding", "N", kWhat,
     "pixels around the image before a random crop of its size; 0: no crop (default: the data set's)", kRuns,
     [](S& s, Text t) { s.train.crop_padding = small(t, 0, kMostPadding); },
     [](const S& s) { return s.train.crop_padding ? whole(*s.train.crop_padding) : std::string(); }},
    {"crop-fill", "black|reflect", kWhat,
     "what the pixels of --crop-padding are: black, or the image "
     "mirrored at its edge",
     kRuns, [](S& s, Text t) { s.train.crop_fill = *train::crop_fill(known(t, train::crop_fill_names())); },
     [](const S& s) { return std::string(train::name(s.train.crop_fill)); }},
    {"flip", "KIND", kWhat,
     "horizontal flips: none, random, or alternating: each image every other epoch (default: the data "
     "set's)",
     kRuns, [](S& s, Text t) { s.train.flip = *train::flip(known(t, train::flip_names())); },
     [](const S& s) { return s.train.flip ? std::string(train::name(*s.train.flip)) : std::string(); }},
    {"rotate", "DEGREES", kWhat,
     "rotate each image by a random angle of at most this, either way; the edge's pixels fill the "
     "gaps",
     kRuns, [](S& s, Text t) { s.train.warp.rotate = decimal(t, {.least = 0, .most = 180}); },
     [](const S& s) { return as_text(s.train.warp.rotate); }},
    {"shear", "DEGREES", kWhat, "shear each image by a random angle of at most this, either way", kRuns,
     [](S& s, Text t) { s.train.warp.shear = decimal(t, {.least = 0, .most = 80}); },
     [](const S& s) { return as_text(s.train.warp.shear); }},
    {"shift", "X", kWhat,
     "shift each image by a random part of its height and of its width, at most this, either way", kRuns,
     [](S& s, Text t) { s.train.warp.shift = decimal(t, {.least = 0, .most = 1}); },
     [](const S& s) { return as_text(s.train.warp.shift); }},
    {"test-time-augmentation", "KIND", kWhat,
     "evaluate on the mean of the logits of each image and its mirror image (flip), or also of both moved "
     "by a pixel either way (flip-shift); none; flip costs 2 evaluations, flip-shift 6",
     kTrainings | kSearch | kEvaluate,
     [](S& s, Text t) { s.train.test_views = *train::views_of_name(known(t, train::views_names())); },
     [](const S& s) { return std::string(train::name_of_views(s.train.test_views)); }},
    {"validation-split", "X", kWhat,
     "hold back this part of every training class, the same images for every seed, and evaluate on it too; "
     "the best epoch is then chosen there",
     kRuns | kEvaluate,
     [](S& s, Text t) { s.train.validation_split = decimal(t, {.least = 0, .most = 0.9}); },
     [](const S& s) { return as_text(s.train.validation_split); }},
    {"bad-images", "error|skip", kWhat,
     "folder: stop at an image that cannot be decoded, or decode all of them before the first step (data "
     "pack: before packing) and leave such ones out, named and counted",
     kRuns | kData | kEvaluate, [](S& s, Text t) { s.train.skip_bad_images = one_of(t, kBadImages) == 1; },
     [](const S& s) { return kBadImages[s.train.skip_bad_images ? 1 : 0]; }},
    {"label-smoothing", "X", kWhat,
     "label smoothing: the part of the target that is spread evenly over all "
     "classes",
     kRuns | kEvaluate,
     [](S& s, Text t) { s.train.label_smoothing = decimal(t, {.least = 0, .most = 0.999}); },
     [](const S& s) { return as_text(s.train.label_smoothing); }},
    {"workers", "N", kWho,
     "workers of all processes together, which share every global batch (default: one per process)",
     kTrain | kSweep | kComm | kSearch | kEvaluate,
     [](S& s, Text t) { s.train.workers = small(t, 1, kManyWorkers); },
     [](const S& s) { return whole(s.train.workers); }},
    {"workers", "N|LIST", kWho,
     "workers that share the large batch (default: one per process); with --compare workers the "
     "numbers to compare, such as 1,2,4",
     kConverge,
     [](S& s, Text t) {
       choose_worker_list(s, t);
       s.train.workers = s.study.scale.workers.front();
     },
     [](const S& s) { return whole(s.train.workers); }},
    {"workers", "LIST", kWho, "numbers of workers to compare, such as 1,2,4", kScale | kStudy,
     [](S& s, Text t) { choose_worker_list(s, t); },
     [](const S& s) { return fmt::format("{}", fmt::join(s.study.scale.workers, ",")); }},
    {"threads", "N", kWho, "cores per worker; 0: the machine's cores, divided among the workers",
     kRuns | kDoctor | kEvaluate, [](S& s, Text t) { s.train.threads = small(t, 0, kManyWorkers); },
     [](const S& s) { return whole(s.train.threads); }},
    {"local-batch", "b", kWho,
     "samples per worker and step; the global batch is this times the workers (default 128)",
     kTrain | kDoctor | kSearch | kEvaluate,
     [](S& s, Text t) { s.train.local_batch = whole_number(t, 1, kLargestBatch); },
     [](const S& s) { return whole_or_none(s.train.local_batch); }, Setting("global-batch")},
    {"global-batch", "B", kWho, "samples per step, of all workers together", kTrain | kSearch,
     [](S& s, Text t) { s.train.global_batch = whole_number(t, 1, kLargestBatch); },
     [](const S& s) { return whole_or_none(s.train.global_batch); }, Setting("local-batch")},
    {"shard", "s", kWho,
     "cut the global batch into shards of s samples; one worker then gives the same bits as every number of "
     "workers that gives each a power of two of whole shards; slower",
     kRuns | kEvaluate, [](S& s, Text t) { s.train.shard = whole_number(t, 1, kLargestBatch); },
     [](const S& s) { return whole_or_none(s.train.shard); }},
    {"bn", "MODE", kWho,
     "which samples share batch-norm statistics: local (a worker's), sync (all workers'), ghost:N (groups "
     "of N)",
     kRuns | kEvaluate, [](S& s, Text t) { choose_batch_norm(s.train, t); },
     [](const S& s) { return train::name(s.train.batch_norm, s.train.ghost_size); }},
    {"pin", "", kWho, "bind each worker to cores of its own, if the machine allows it", kRuns | kEvaluate,
     [](S& s, Text t) { s.train.pin = truth(t); }, [](const S& s) { return yes_no(s.train.pin); }},
    {"measured-kernels", "", kWho,
     "compute each layer by the algorithm that is fastest on this machine (on the first process's, if there "
     "are several), measured once and kept; "
     "bits may differ from other machines'; off: by the layer's shape and the kind of processor",
     kRuns | kEvaluate, [](S& s, Text t) { s.train.measured_kernels = truth(t); },
     [](const S& s) { return yes_no(s.train.measured_kernels); }},
    {"deterministic", "", kWho,
     "GPUs: sums over workers by one algorithm of NCCL's (a ring), so that every run adds in the same order; slower "
     "on some links",
     kRuns | kComm, [](S& s, Text t) { s.train.deterministic = truth(t); },
     [](const S& s) { return yes_no(s.train.deterministic); }},
    {"kernels-from", "FILE", kWho,
     "compute each layer by the algorithm that the run of this record or checkpoint used", kRuns | kEvaluate,
     [](S& s, Text t) { s.train.kernels_from = t; },
     [](const S& s) { return s.train.kernels_from.string(); }},
    {"loader-threads", "N", kWho,
     "threads per worker that prepare batches while it computes; 0: none, the worker prepares each "
     "batch before its step",
     kRuns, [](S& s, Text t) { s.train.loader_threads = small(t, 0, kManyWorkers); },
     [](const S& s) { return whole(s.train.loader_threads); }},
    {"bucket-mb", "X", kWho,
     "size of the gradients that one call reduces, in 1e6 bytes; smaller buckets overlap more and need more "
     "calls",
     kRuns, [](S& s, Text t) { s.train.bucket_mb = decimal(t, {.least = 0, .open_below = true}); },
     [](const S& s) { return as_text(s.train.bucket_mb); }, Setting("bucket")},
    {"bucket", "auto", kWho,
     "auto: the size is found before the first step, from the latency and bandwidth of a reduction; the "
     "record says why",
     kRuns,
     [](S& s, Text t) {
       if (t != "auto")
         base::fail(base::ErrorKind::usage, "must be auto, got '{}'; a size of your own is --bucket-mb X", t);
       s.train.bucket_auto = true;
     },
     [](const S& s) { return std::string(s.train.bucket_auto ? "auto" : ""); }, Setting("bucket-mb")},
    {"deadline", "SECONDS", kWho,
     "a reduction that takes longer is an error, as is a run in which no worker does anything for longer",
     kRuns | kComm, [](S& s, Text t) { s.train.deadline_s = small(t, 1); },
     [](const S& s) { return whole(s.train.deadline_s); }},
    {"epochs", "E", kHowLong, "passes over the training set, 0.5 allowed (default 1)",
     kTrainings | kStudy | kSearch, [](S& s, Text t) { s.train.epochs = decimal(t, {.open_below = true}); },
     [](const S& s) { return decimal_or_none(s.train.epochs); }, Setting("steps")},
    {"steps", "S", kHowLong, "updates", kTrainings, [](S& s, Text t) { s.train.steps = whole_number(t, 1); },
     [](const S& s) { return whole_or_none(s.train.steps); }, Setting("epochs")},
    {"evaluate-every", "N", kHowLong,
     "epochs between evaluations, on the validation part and on the test set as --test-set says; 0: never",
     kTrainings, [](S& s, Text t) { s.train.evaluate_every = small(t, 0); },
     [](const S& s) { return whole(s.train.evaluate_every); }},
    {"test-set", "WHEN", kHowLong,
     "when the test set is read: last: once, at the end, with the weights of the best epoch on validation; "
     "every: at every evaluation; never (default: last with a validation part, else every); the record "
     "counts the readings",
     kTrainings, [](S& s, Text t) { s.train.test_set = *train::test_set(known(t, train::test_set_names())); },
     [](const S& s) {
       return s.train.test_set ? std::string(train::name(*s.train.test_set)) : std::string();
     }},
    {"early-stopping", "PATIENCE", kHowLong,
     "end after this many epochs without a better validation figure (higher accuracy; if equal, "
     "lower loss); 0: never",
     kTrainings | kSearch, [](S& s, Text t) { s.train.early_stopping = small(t, 0); },
     [](const S& s) { return whole(s.train.early_stopping); }},
    {"on-nan", "WHAT", kHowLong,
     "when the loss explodes or is no longer finite: stop; rollback: continue from the newest good "
     "checkpoint in --out at a quarter of the learning rate, at most 5 times; skip: skip such "
     "updates, at most 10 in a row",
     kTrain, [](S& s, Text t) { s.train.on_nan = *train::on_nan(known(t, train::on_nan_names())); },
     [](const S& s) { return std::string(train::name(s.train.on_nan)); }},
};
static_assert(reads_all(kTrainingRows, 0, kRulePart),
              "a setting of this part of measure/setting.h has no row here");

}  // namespace

std::span<const Option> training_rows() { return kTrainingRows; }

}  // namespace paceline::cli
