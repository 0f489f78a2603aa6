/// The rows of options about one training: model, data, batch, workers, length, links between workers; and
/// what follows from all rows.

#include "train/given/option_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "data/dataset.h"
#include "graph/zoo.h"

namespace paceline::train {
namespace {

using measure::Setting;
using O = Options;
using Text = std::string_view;
using Warp = data::WarpOptions;

constexpr const char* kWhat = "What is trained, on what";
constexpr const char* kWho = "Batches, workers and execution";
constexpr const char* kHowLong = "How long";

constexpr OptionRules kAugmenting = read_if("augment", "true", ReadIf::stays_in_records);

std::string device_named(std::string_view text) {
  constexpr std::string_view kNumbered = "cuda:";
  constexpr int kMostGpus = 64;  // of one host
  const auto devices = words_of("cpu|reference|cuda|cuda:K|cuda-on-host");
  if (text.starts_with(kNumbered))
    return fmt::format("cuda:{}",
                       base::whole_number_in(text, "K", text.substr(kNumbered.size()), 0, kMostGpus - 1));
  if (text.starts_with("gpu"))
    refuse_options("must be one of {}, got '{}': GPUs are called cuda here", fmt::join(devices, ", "), text);
  return devices[base::one_of(text, devices)];
}

void choose_batch_norm(Options& options, std::string_view text) {
  constexpr std::string_view kGhost = "ghost:";
  if (text.starts_with(kGhost)) {
    options.batch_norm = engine::BatchNormMode::ghost;
    options.ghost_size =
        static_cast<int>(base::whole_number_in(text, "N", text.substr(kGhost.size()), 1, 1 << 20));
    return;
  }
  const auto chosen = base::one_of(text, words_of("local|sync|ghost:N"));
  options.batch_norm = chosen == 0 ? engine::BatchNormMode::local : engine::BatchNormMode::synchronised;
}

void choose_shuffle(Options& options, std::string_view text) {
  constexpr std::string_view kWindow = "window:";
  if (text == "global")
    options.shuffle_window = 0;
  else if (text.starts_with(kWindow))
    options.shuffle_window =
        base::whole_number_in(text, "W", text.substr(kWindow.size()), 1, std::int64_t{1} << 20);
  else
    refuse_options("must be global or window:W, got '{}'", text);
}

/// Records lack it at its default: it is younger than the first of them.
std::string name_of_shuffle(const Options& options) {
  return options.shuffle_window == 0 ? "" : fmt::format("window:{}", options.shuffle_window);
}

constexpr auto name_of_noise_scale = [](const Options& o) {
  return o.noise_scale == 0 ? std::string("off") : std::to_string(o.noise_scale);
};

// --test-time-augmentation: how many views of an image each name stands for.
constexpr std::string_view kNamesOfViews = "none|flip|flip-shift";
constexpr std::array kViews{1, 2, 6};
constexpr auto name_of_views = [](const Options& o) {
  return words_of(
      kNamesOfViews)[static_cast<std::size_t>(std::ranges::find(kViews, o.test_views) - kViews.begin())];
};

std::string models_in_words() {
  return fmt::format(
      "{} models by name, such as resnet18-cifar, mnist-cnn or resnet50 (paceline model list), or a TOML "
      "file of layers",
      graph::model_names().size());
}

/// "cifar10:DIR (CIFAR-10, ...); mnist:DIR (...); ...".
std::string formats_in_words() {
  std::string text;
  for (const auto& format : data::known_formats())
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", format.spec(), format.summary);
  return text + "; the keys that each takes after a comma are in docs/formats.md";
}

constexpr OptionRow<Options> kTrainingRows[] = {
    {"model", "NAME|FILE", kWhat, models_in_words, kRuns | kEvaluate | kInit, at<&O::model>()},
    {"data", "SPEC", kWhat, formats_in_words, kRuns | kEvaluate, at<&O::data>()},
    {"device", "NAME", kWhat,
     "cpu; cuda: GPUs, worker i of a host uses the visible GPU number i modulo their count; cuda:K: GPU K "
     "for all workers; cuda-on-host: the CUDA engine on the processor, slow, to try it without a GPU; "
     "reference: plain loops, slow, for comparison",
     kRuns | kDoctor | kEvaluate | kClassify | kComm | kModel, parsed_at<device_named, &O::device>()},
    {"precision", "P", kWhat,
     "fp32, bf16 or, on GPUs, fp16 with a dynamic loss scale (both with fp32 master weights), or auto: with --resume, "
     "and in classify, that of the checkpoint (fp32 for fp16 on a processor), else bf16 on GPUs that have it and on "
     "kinds of processors on which it was measured to be faster, else fp32; the record says which",
     kRuns | kDoctor | kEvaluate | kClassify | kModel, at<&O::precision>({.words = "auto|fp32|bf16|fp16"})},
    {"seed", "N", kWhat, "seed of weights, order, augmentation and dropout; the same seed gives the same run",
     kRuns, at<&O::seed>()},
    {"augment", "", kWhat, "the data set's usual random crop and flip", kRuns, at<&O::augment>()},
    {"crop-padding", "N", kWhat,
     "pixels around the image before a random crop of its size; 0: no crop (default: the data set's)", kRuns,
     at<&O::crop_padding>({.most = 1024}), kAugmenting},
    {"crop-fill", "black|reflect", kWhat,
     "what the pixels of --crop-padding are: black, or the image mirrored at its edge", kRuns,
     at<&O::crop_fill>({.left_out = "black"}), kAugmenting},
    {"flip", "KIND", kWhat,
     "horizontal flips: none, random, or alternating: each image every other epoch (default: the data set's)",
     kRuns, at<&O::flip>(), kAugmenting},
    {"rotate", "DEGREES", kWhat,
     "rotate each image by a random angle of at most this, either way; the edge's pixels fill the gaps",
     kRuns, at<&O::warp, &Warp::rotate>({.most = 180, .left_out = "0"}), kAugmenting},
    {"shear", "DEGREES", kWhat, "shear each image by a random angle of at most this, either way", kRuns,
     at<&O::warp, &Warp::shear>({.most = 80, .left_out = "0"}), kAugmenting},
    {"shift", "X", kWhat,
     "shift each image by a random part of its height and of its width, at most this, either way", kRuns,
     at<&O::warp, &Warp::shift>({.most = 1, .left_out = "0"}), kAugmenting},
    {"trivial-augment", "", kWhat,
     "one of 14 changes of shape or colour for each image, at a random strength: torchvision's TrivialAugmentWide, "
     "before the crop and flip",
     kRuns, at<&O::trivial_augment>({.left_out = "false"}), kAugmenting},
    {"random-erasing", "P", kWhat,
     "set a random box of this part of the images to the mean colour: torchvision's RandomErasing, after crop, flip and normalisation",
     kRuns, at<&O::random_erasing>({.most = 1, .left_out = "0"}), kAugmenting},
    {"mixup", "A", kWhat,
     "mix each two training images, and their labels alike, by a factor drawn from Beta(A, A), after all else (0.2 in "
     "many recipes); training accuracy then counts the heavier label; 0: off",
     kRuns, at<&O::mixup>({.left_out = "0"}), kAugmenting},
    {"cutmix", "A", kWhat,
     "show in a random box of each training image the other one of its pair, and weigh their labels by area: a part "
     "drawn from Beta(A, A) (1 in many recipes); with --mixup each pair is mixed in one of the two ways, with equal "
     "chance; 0: off",
     kRuns, at<&O::cutmix>({.left_out = "0"}), kAugmenting},
    {"test-time-augmentation", "KIND", kWhat,
     "evaluate on the mean of the logits of each image and its mirror image (flip), or also of both moved by "
     "a pixel either way (flip-shift); none; flip costs 2 evaluations, flip-shift 6",
     kTrainings | kSearch | kEvaluate | kClassify,
     Field<O>([](O& o, Text t) { o.test_views = kViews[base::one_of(t, words_of(kNamesOfViews))]; },
              [](const O& o) { return o.test_views == 1 ? std::string() : name_of_views(o); },
              name_of_views)},
    {"validation-split", "X", kWhat,
     "hold back this part of every training class, the same images for every seed, and evaluate on it too; "
     "the best epoch is then chosen there",
     kRuns | kEvaluate, at<&O::validation_split>({.most = 0.9, .left_out = "0"})},
    {"bad-images", "error|skip", kWhat,
     "folder: stop at an image that cannot be decoded, or decode all of them before the first step (data "
     "pack: before packing) and leave such ones out, named and counted",
     kRuns | kData | kEvaluate, at<&O::skip_bad_images>({.words = "error|skip", .left_out = "error"})},
    {"shuffle", "global|window:W", kWhat,
     "order of the training images: global, any of all of them; window:W, for shards: the shards in random order, W "
     "at a time, and any of the images of these, so that only W shards are read at a time",
     kRuns,
     Field<O>([](O& o, Text t) { choose_shuffle(o, t); }, [](const O& o) { return name_of_shuffle(o); },
              [](const O& o) {
                const auto name = name_of_shuffle(o);
                return name.empty() ? std::string("global") : name;
              })},
    {"label-smoothing", "X", kWhat,
     "label smoothing: the part of the target that is spread evenly over all classes", kRuns | kEvaluate,
     at<&O::label_smoothing>({.most = 0.999})},
    {"class-weights", "balanced|FILE", kWhat,
     "multiply the loss of a training image by the weight of its class: balanced, inverse to the number of training "
     "images of the class, or those of a CSV file with a line 'class,weight' for each class; evaluation has no weights",
     kRuns, at<&O::class_weights>()},
    {"sampler", "uniform|balanced", kWhat,
     "which training images an epoch draws: each once, or each class equally often, so that images of small classes "
     "come several times and not all of large ones do",
     kRuns, at<&O::balanced_sampler>({.words = "uniform|balanced", .left_out = "uniform"})},
    {"workers", "N", kWho,
     "workers of all processes together, which share every global batch (default: one per process)",
     kTrain | kSweep | kComm | kSearch | kEvaluate, at<&O::workers>({.least = 1, .most = kManyWorkers})},
    // src/cli/options/option_table.cc reads lists of workers, for studies.
    {"workers", "N|LIST", kWho,
     "workers that share the large batch (default: one per process); with --compare workers the numbers to "
     "compare, such as 1,2,4",
     kConverge, at<&O::workers>({.least = 1, .most = kManyWorkers})},
    {"workers", "LIST", kWho, "numbers of workers to compare, such as 1,2,4", kScale | kStudy,
     at<&O::workers>({.least = 1, .most = kManyWorkers})},
    {"threads", "N", kWho, "cores per worker; 0: the machine's cores, divided among the workers",
     kRuns | kDoctor | kEvaluate | kClassify | kModel, at<&O::threads>({.most = kManyWorkers})},
    {"local-batch", "b", kWho,
     "samples per worker and step; the global batch is this times the workers (default 128)",
     kTrain | kDoctor | kSearch | kEvaluate | kModel,
     at<&O::local_batch>({.least = 1, .most = kLargestBatch}), rival("global-batch")},
    {"global-batch", "B", kWho, "samples per step, of all workers together", kTrain | kSearch,
     at<&O::global_batch>({.least = 1, .most = kLargestBatch}), rival("local-batch")},
    {"shard", "s", kWho,
     "cut the global batch into shards of s samples; one worker then gives the same bits as every number of "
     "workers that gives each a power of two of whole shards; slower",
     kRuns | kEvaluate, at<&O::shard>({.least = 1, .most = kLargestBatch})},
    {"micro-batch", "m", kWho,
     "a worker computes its batch in parts of m samples, one after the other, and adds their gradients, so that a "
     "batch may be larger than the memory; batch norm then takes its statistics from m samples",
     kRuns, at<&O::micro_batch>({.least = 1, .most = kLargestBatch, .left_out = "0"})},
    {"bn", "MODE", kWho,
     "which samples share batch-norm statistics: local (a worker's), sync (all workers'), ghost:N (groups of "
     "N)",
     kRuns | kEvaluate,
     Field<O>([](O& o, Text t) { choose_batch_norm(o, t); },
              [](const O& o) { return name(o.batch_norm, o.ghost_size); })},
    {"pin", "", kWho, "bind each worker to cores of its own, if the machine allows it", kRuns | kEvaluate,
     at<&O::pin>()},
    {"measured-kernels", "", kWho,
     "compute each layer by the algorithm that is fastest on this machine (on the first process's, if there "
     "are several), measured once and kept; bits may differ from other machines'; off: by the layer's shape "
     "and the kind of processor",
     kRuns | kEvaluate, at<&O::measured_kernels>()},
    {"deterministic", "", kWho,
     "GPUs: sums over workers by one algorithm of NCCL's (a ring), so that every run adds in the same order; "
     "slower on some links",
     kRuns | kComm, at<&O::deterministic>({.left_out = "false"})},
    {"kernels-from", "FILE", kWho,
     "compute each layer by the algorithm that the run of this record or checkpoint used", kRuns | kEvaluate,
     at<&O::kernels_from>()},
    {"loader-threads", "N", kWho,
     "threads per worker that prepare batches while it computes; 0: none, the worker prepares each batch "
     "before its step",
     kRuns, at<&O::loader_threads>({.most = kManyWorkers})},
    {"bucket-mb", "X", kWho,
     "size of the gradients that one call reduces, in 1e6 bytes; smaller buckets overlap more and need more "
     "calls",
     kRuns,
     Field<O>([](O& o, Text t) { o.bucket_mb = base::decimal(t, {.open_below = true}); },
              [](const O& o) { return o.bucket_auto ? "auto" : base::as_text(o.bucket_mb); },
              [](const O& o) { return base::as_text(o.bucket_mb); }),
     rival("bucket")},
    {"bucket", "auto", kWho,
     "auto: the size is found before the first step, from the latency and bandwidth of a reduction; the "
     "record says why",
     kRuns,
     Field<O>(
         [](O& o, Text t) {
           if (t != "auto") refuse_options("must be auto, got '{}'; a size of your own is --bucket-mb X", t);
           o.bucket_auto = true;
         },
         [](const O& o) { return o.bucket_auto ? "auto" : ""; }),
     rival("bucket-mb")},
    {"deadline", "SECONDS", kWho,
     "a reduction that takes longer is an error, as is a run in which no worker does anything for longer",
     kRuns | kComm, at<&O::deadline_s>({.least = 1})},
    {"epochs", "E", kHowLong, "passes over the training set, 0.5 allowed (default 1)",
     kTrainings | kStudy | kSearch, at<&O::epochs>({.open_below = true}), rival("steps")},
    {"steps", "S", kHowLong, "updates", kTrainings, at<&O::steps>({.least = 1}), rival("epochs")},
    {"evaluate-every", "N", kHowLong,
     "epochs between evaluations, on the validation part and on the test set as --test-set says; 0: never",
     kTrainings, at<&O::evaluate_every>()},
    {"test-set", "WHEN", kHowLong,
     "when the test set is read: last: once, at the end, with the weights of the best epoch on validation; "
     "every: at every evaluation; never (default: last with a validation part, else every); the record "
     "counts the readings",
     kTrainings,
     Field<O>([](O& o, Text t) { o.test_set = option_value::parsed<TestSet>(t, {}); },
              [](const O& o) {  // a validation part of the data's own is not known here
                const auto policy = test_policy(o, o.validation_split > 0);
                return o.window_steps == 0 && policy != TestSet::every ? name(policy) : "";
              },
              [](const O& o) { return o.test_set ? name(*o.test_set) : ""; })},
    {"early-stopping", "PATIENCE", kHowLong,
     "end after this many epochs without a better validation figure (higher accuracy; if equal, lower loss); "
     "0: never",
     kTrainings | kSearch, at<&O::early_stopping>({.left_out = "0"})},
    {"target", "accuracy=X|loss=X", kHowLong,
     "end when an evaluation on the validation part, or without one on the test set, reaches this accuracy (a part of "
     "1) or mean loss; the record says after how many updates and seconds",
     kTrainings,
     Field<O>(
         [](O& o, Text t) {
           o.target = target_named(t);
           if (!o.target)
             refuse_options(
                 "must be accuracy=X with X above 0 and at most 1, or loss=X with X above 0, such as "
                 "accuracy=0.97, got '{}'",
                 t);
         },
         [](const O& o) { return o.target ? text_of(*o.target) : ""; })},
    {"evaluate-steps", "K", kHowLong,
     "evaluate after each multiple of K updates too; the record has every evaluation; 0: only at the ends of epochs, "
     "as --evaluate-every says",
     kTrainings, at<&O::evaluate_steps>({.left_out = "0"})},
    {"on-nan", "WHAT", kHowLong,
     "when the loss explodes or is no longer finite: stop; rollback: continue from the newest good "
     "checkpoint in --out at a quarter of the learning rate, at most 5 times; skip: skip such updates, at "
     "most 10 in a row",
     kTrain, at<&O::on_nan>({.left_out = "stop"})},
    {"noise-scale", "K|off", kHowLong,
     "with several workers, --shard or --micro-batch: measure in every K-th step how noisy the gradient is, from which "
     "follows how large a batch may become before it wastes samples; under 0.5 % of a step",
     kTrainings | kStudy | kSearch,
     Field<O>([](O& o, Text t) { o.noise_scale = t == "off" ? 0 : base::whole_number(t, 1); },
              [](const O& o) { return o.noise_scale == Options{}.noise_scale ? "" : name_of_noise_scale(o); },
              name_of_noise_scale)},
};
static_assert(has_rows<Options>(kTrainingRows, "model", "noise-scale"));

constexpr OptionRow<Options> kLinkRows[] = {
    {"parallel", "HOW", kBetween,
     "all-reduce: every worker has data, weights and optimizer, and gradients are summed among all; "
     "data-parallel: only worker 0 has them, and sends or receives all inputs, outputs, weights and "
     "gradients in each step, as in torch.nn.DataParallel (one process)",
     kRuns, at<&O::data_parallel>({.words = "all-reduce|data-parallel", .left_out = "all-reduce"})},
    {"gradients-as", "fp32|bf16", kBetween,
     "format in which gradients are sent between processes; bf16 halves the bytes, and sums are rounded to it",
     kTrain, at<&O::gradients_as_bf16>({.words = "fp32|bf16", .left_out = "fp32"})},
    {"shared-memory", "", kBetween,
     "processes of one host reduce in shared memory; off: by messages, as between hosts", kRuns | kComm,
     at<&O::shared_memory>({.left_out = "true"})},
    {"emulate-link", "SPEC", kBetween,
     "delay messages as this link between workers would: latency=50us,bandwidth=1GB/s; with ,between=hosts "
     "only between hosts; with per-host=4,inside-bandwidth=10GB/s as between hosts of 4 "
     "workers; with per-switch=4,oversubscription=2 slower beyond 4; every table says so",
     kTrain | kScale | kComm, at<&O::emulate_link>()},
    {"emulate-straggler", "SPEC", kBetween,
     "slow down all of one worker's own work: rank=3,slower=1.3x; every table says so",
     kTrain | kScale | kComm, at<&O::emulate_straggler>()},
    {"emulate-compute", "RECORD|SPEC", kBetween,
     "sleep instead of computing, as long as the phases of RECORD lasted or as written: "
     "forward=80ms,backward=160ms,spread=3%; every worker is as if on a node of its own, and every table says "
     "so",
     kTrain | kScale, at<&O::emulate_compute>()},
    {"control", "none|no-exchange", kBetween,
     "no-exchange: do not sum gradients over workers, to measure what the exchange does to their own work; no "
     "training, and every table says so",
     kTrain | kScale, at<&O::no_exchange>({.words = "none|no-exchange", .left_out = "none"})},
    {"emulate-same-order", "", kBetween,
     "give every epoch the order of the first, as PyTorch's DistributedSampler does if set_epoch is not called",
     kTrain | kConverge,
     Field<O>([](O& o, Text t) { o.same_order = base::truth(t); },
              [](const O& o) { return o.same_order ? "yes" : ""; },
              [](const O& o) { return o.same_order ? "true" : "false"; })},
    {"placement", "packed|spread|both", kProcesses,
     "which processes get the workers, if there are fewer workers than processes: packed fills one node "
     "before the next, spread uses all nodes evenly; both runs each cell of a study both ways, where they "
     "differ",
     kRuns, at<&O::placement>({.words = "packed|spread", .left_out = "packed"})},
};
static_assert(has_rows<Options>(kLinkRows, "parallel", "placement"));

constexpr OptionRow<Options> kWindowRows[] = {
    {"window-steps", "K", kCells, "time K steps instead of a whole epoch (train also stops after them)",
     kTrain | kTimed, at<&O::window_steps>({.least = 1})},
    {"warmup-steps", "K", kCells, "steps before the clock starts", kTrain | kTimed, at<&O::warmup_steps>()},
    {"window-seconds", "X", kCells,
     "timed steps that take longer stop early, after at least 3 of them; 0: no limit", kTrain | kTimed,
     at<&O::window_seconds>()},
};
static_assert(has_rows<Options>(kWindowRows, "window-steps", "window-seconds"));

/// Calls `take` with each row.
template <typename Take>
void for_each_row(Take take) {
  for (const auto& rows : {training_rows(), rule_rows(), link_rows(), window_rows()})
    for (const auto& row : rows) take(row);
}

}  // namespace

std::span<const OptionRow<Options>> training_rows() { return kTrainingRows; }
std::span<const OptionRow<Options>> link_rows() { return kLinkRows; }
std::span<const OptionRow<Options>> window_rows() { return kWindowRows; }

std::vector<std::string> words_of(std::string_view joined, char between) {
  std::vector<std::string> words;
  while (!joined.empty()) {
    const auto end = std::min(joined.find(between), joined.size());
    words.emplace_back(joined.substr(0, end));
    joined.remove_prefix(std::min(end + 1, joined.size()));
  }
  return words;
}

bool ReadIf::holds(const Options& options) const {
  if (!option_) return true;
  std::string text;
  for_each_row([&](const OptionRow<Options>& row) {
    if (row.setting == *option_) text = row.field.text(options);
  });
  if (values_.empty()) return !text.empty() && text != "0";
  return std::ranges::count(base::parts(values_), text) > 0;
}

std::string ReadIf::why_not() const {
  if (values_ == "true") return fmt::format("with --no-{}", option_->key());
  std::string values(values_);
  if (const auto last = values.rfind(", "); last != values.npos) values.replace(last, 2, " or ");
  return fmt::format("without --{}{}{}", option_->key(), values.empty() ? "" : " ", values);
}

measure::SettingTexts settings(const Options& options) {
  measure::SettingTexts texts;
  for_each_row([&](const OptionRow<Options>& row) {
    if (!row.setting.is_recorded()) return;
    if (row.rules.read_if.leaves_records_if_unread() && !row.rules.read_if.holds(options)) return;
    const auto text = row.field.text(options);
    if (!text.empty()) texts.emplace(row.setting.key(), text);
  });
  return texts;
}

std::vector<measure::ChangeRecord> differences(const measure::SettingTexts& then,
                                               const measure::SettingTexts& now) {
  std::set<std::string> names;
  for (const auto* settings : {&then, &now})
    for (const auto& [name, value] : *settings) names.insert(name);
  const auto in = [](const measure::SettingTexts& settings, const std::string& name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<measure::ChangeRecord> found;
  for (const auto& name : names)
    if (const auto before = in(then, name), after = in(now, name); before != after)
      found.push_back({.setting = name, .then = before, .now = after});
  return found;
}

}  // namespace paceline::train
