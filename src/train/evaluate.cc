#include "train/evaluate.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "graph/layout.h"
#include "train/given/options.h"

namespace paceline::train {
namespace {

/// Images are read into a buffer of this size, then copied to the device.
constexpr std::int64_t kChunkBytes = std::int64_t{1} << 20;

double mean_loss(const engine::LossSums& sums) { return sums.loss / static_cast<double>(sums.samples); }
double hit_rate(const engine::LossSums& sums) {
  return static_cast<double>(sums.correct) / static_cast<double>(sums.samples);
}

std::optional<double> top_5(const EvaluatedSums& sums) {
  if (!sums.correct_in_5) return std::nullopt;
  return static_cast<double>(*sums.correct_in_5) / static_cast<double>(sums.samples);
}

}  // namespace

bool is_in_five(std::span<const double> logits, std::int32_t label) {
  constexpr int kFive = 5;
  const auto own = static_cast<std::size_t>(label);
  int above = 0;
  for (std::size_t k = 0; k < logits.size(); ++k)
    above += logits[k] > logits[own] || (k < own && logits[k] == logits[own]) ? 1 : 0;
  return above < kFive;
}

ImageStore::ImageStore(const Job& job, const data::Augment& augment, engine::Engine& engine)
    : job_(job), engine_(engine) {
  const StoredImages& stored = job.resolved.stored;
  base::expects(stored.total() > 0, "the engine has room for images");
  validation_.first = stored.train;
  test_.first = stored.train + stored.validation;
  engine.set_byte_values(augment.byte_values());
}

std::int64_t ImageStore::planned_bytes(const StoredImages& stored) {
  if (stored.total() == 0) return 0;
  return stored.total() * static_cast<std::int64_t>(sizeof(std::int32_t)) + kChunkBytes;
}

const ImageStore::Part& ImageStore::train() {
  return fill(train_, *job_.source.train, 0, job_.source.train->size());
}
const ImageStore::Part& ImageStore::validation(std::int64_t begin, std::int64_t end) {
  base::expects(end - begin <= job_.resolved.stored.validation, "there is room for the validation part");
  return fill(validation_, *job_.source.validation, begin, end);
}
const ImageStore::Part& ImageStore::test(std::int64_t begin, std::int64_t end) {
  base::expects(end - begin <= job_.resolved.stored.test, "there is room for the part of the test set");
  return fill(test_, *job_.source.test, begin, end);
}

const ImageStore::Part& ImageStore::fill(Part& part, const data::Dataset& set, std::int64_t begin,
                                         std::int64_t end) {
  if (part.is_there) {
    base::expects(static_cast<std::int64_t>(part.labels.size()) == end - begin, "a part stays the same");
    return part;
  }
  const std::int64_t image = set.format().bytes();
  const std::int64_t at_once =
      std::clamp<std::int64_t>(kChunkBytes / image, 1, std::max<std::int64_t>(1, end - begin));
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(at_once * image));
  part.labels.resize(static_cast<std::size_t>(end - begin));
  for (std::int64_t done = 0; done < end - begin; done += at_once) {
    const std::int64_t count = std::min(at_once, end - begin - done);
    for (std::int64_t i = 0; i < count; ++i)
      part.labels[static_cast<std::size_t>(done + i)] = set.read(
          begin + done + i,
          std::span(pixels).subspan(static_cast<std::size_t>(i * image), static_cast<std::size_t>(image)));
    engine_.store_images(part.first + done, std::span(pixels).first(static_cast<std::size_t>(count * image)));
  }
  part.is_there = true;
  return part;
}

data::EvaluationOptions evaluation_options(std::int64_t test_samples, std::int64_t batch, int views, int rank,
                                           int world, bool is_sharded) {
  const auto part = data::evaluation_part(test_samples, rank, world, is_sharded ? batch / views : 1);
  return {.begin = part.begin, .end = part.end, .batch = batch / views, .views = views, .threads = 0};
}

bool is_evaluated(const Job& job, const Counters& counters) {
  const int every = job.options.evaluate_every;
  const std::int64_t steps = job.options.evaluate_steps;
  if (every <= 0 || job.options.window_steps != 0) return false;
  if (steps > 0 && counters.update % steps == 0) return true;
  return counters.update == job.resolved.end || (counters.step == 0 && counters.epoch % every == 0);
}

std::int64_t planned_evaluations(const Job& job, std::int64_t done) {
  const std::int64_t steps = job.resolved.steps_per_epoch, end = job.resolved.end;
  const std::int64_t last = (end + steps - 1) / steps, each = job.options.evaluate_steps;
  std::int64_t count = each > 0 ? end / each - done / each : 0;
  for (std::int64_t epoch = done / steps + 1; epoch <= last; ++epoch) {
    const bool is_due = epoch == last || epoch % job.options.evaluate_every == 0;
    const bool is_counted = each > 0 && std::min(epoch * steps, end) % each == 0;
    count += is_due && !is_counted ? 1 : 0;
  }
  return count;
}

std::optional<EvaluatedSums> evaluate(data::EvaluationBatches& batches, int views, engine::Engine& engine,
                                      comm::Communicator& communicator, const std::stop_token& stop) {
  engine::LossSums sums;
  const auto classes = static_cast<std::size_t>(engine.graph().classes());
  const bool has_five = classes >= kLeastForTopFive;
  double in_five = 0;
  std::vector<double> logits;
  while (!stop.stop_requested()) {
    const auto* batch = batches.next();
    if (batch == nullptr) break;
    const int count = static_cast<int>(batch->count());
    if (has_five) logits.resize(static_cast<std::size_t>(count) * classes);
    sums += batch->draws.empty() ? engine.evaluate(batch->images, batch->labels, count, views, logits)
                                 : engine.evaluate_draws(batch->draws, batch->labels, count, views, logits);
    for (std::size_t i = 0; has_five && i < batch->labels.size(); ++i)
      in_five += is_in_five(std::span(logits).subspan(i * classes, classes), batch->labels[i]) ? 1 : 0;
  }
  double stops = stop.stop_requested() ? 1 : 0;
  communicator.all_reduce(std::span(&stops, 1), comm::Reduce::sum);
  if (stops > 0) return std::nullopt;
  EvaluatedSums all{reduce_sums(sums, communicator)};
  if (has_five) {
    communicator.all_reduce(std::span(&in_five, 1), comm::Reduce::sum);
    all.correct_in_5 = static_cast<std::int64_t>(in_five);
  }
  return all;
}

engine::LossSums reduce_sums(const engine::LossSums& local, comm::Communicator& communicator) {
  // Counts below 2^53 are exact in double.
  std::array<double, 3> sums{local.loss, static_cast<double>(local.correct),
                             static_cast<double>(local.samples)};
  communicator.all_reduce(sums, comm::Reduce::sum);
  return {.loss = sums[0],
          .correct = static_cast<std::int64_t>(sums[1]),
          .samples = static_cast<std::int64_t>(sums[2])};
}

std::optional<graph::Graph> make_evaluation_graph(const graph::Graph& graph, const data::Source& source) {
  const auto format = source.evaluated_format();
  const graph::Shape trained = graph.input_shape(), evaluated{format.channels, format.height, format.width};
  if (trained == evaluated) return std::nullopt;
  auto other = graph::for_input(graph, evaluated);
  if (!other)
    base::fail(
        base::ErrorKind::usage,
        "data '{}': model '{}' has a layer over all pixels, so that it takes images of {}x{} alone, and "
        "none of {}x{}; leave eval-size out, or take a model that ends with a global pool",
        source.spec, graph.name, trained.height, trained.width, evaluated.height, evaluated.width);
  return other;
}

Evaluator::Evaluator(const Job& job, const data::Augment& augment, engine::Engine& engine,
                     comm::Communicator& communicator, ImageStore* store, SlowWeights& slow)
    : job_(job), augment_(augment), engine_(engine), communicator_(communicator), store_(store), slow_(slow) {
  if (job.evaluation_graph == nullptr || job.options.window_steps != 0) return;
  const int local_rank = communicator.rank() - job.backend.place.process * job.resolved.local_workers;
  other_engine_ = job.backend.machine->compile(
      *job.evaluation_graph, evaluation_compile_options(job.options, job.resolved, job.backend, local_rank));
  other_engine_->warm_up({.views = job.options.test_views});
  other_augment_.emplace(job.source.evaluated_format(),
                         data::AugmentOptions{.mean = job.source.mean, .stddev = job.source.stddev});
}

engine::Engine& Evaluator::engine_now() {
  if (other_engine_ == nullptr) return engine_;
  engine_.fetch();
  std::ranges::copy(engine_.weights(), other_engine_->weights().begin());
  other_engine_->weights_changed();
  return *other_engine_;
}

std::optional<EvaluatedSums> Evaluator::evaluate_on(const data::Dataset& set,
                                                    std::optional<data::EvaluationBatches>& batches,
                                                    std::int64_t passes) {
  if (!batches) {
    auto options = evaluation_options(set.size(), job_.resolved.engine_batch, job_.options.test_views,
                                      communicator_.rank(), communicator_.size(), job_.options.shard > 0);
    options.pool = &job_.pool;
    options.passes = passes;
    // The set is evaluated once more, but not read again: the store has kept it since the first time.
    const auto reads = job_.test_reads.reads();
    if (store_ != nullptr) use_stored(set, options);
    batches.emplace(set, other_augment_ ? *other_augment_ : augment_, options);
    if (store_ != nullptr && &set == &job_.test_reads && job_.test_reads.reads() == reads)
      job_.test_reads.count(batches->samples());
  } else if (store_ != nullptr && &set == &job_.test_reads) {
    job_.test_reads.count(batches->samples());
  }
  const auto sums =
      train::evaluate(*batches, job_.options.test_views, engine_now(), communicator_, job_.stop);
  if (!sums) batches.reset();  // it stopped in the middle of a pass
  return sums;
}

void Evaluator::use_stored(const data::Dataset& set, data::EvaluationOptions& options) {
  const bool is_test = &set == job_.source.test.get();
  const auto& part =
      is_test ? store_->test(options.begin, options.end) : store_->validation(options.begin, options.end);
  options.draws = true;
  options.first_draw = part.first;
  options.labels = part.labels;
}

std::optional<TestFigures> Evaluator::test() {
  const auto test = evaluate_on(*job_.source.test, test_batches_, slow_.has_average() ? 2 : 1);
  if (!test) return std::nullopt;
  TestFigures figures{.loss = mean_loss(*test), .accuracy = hit_rate(*test), .top_5 = top_5(*test)};
  if (!slow_.has_average()) return figures;
  slow_.exchange(engine_);
  const auto averaged = evaluate_on(*job_.source.test, test_batches_, 0);
  slow_.exchange(engine_);
  if (!averaged) return std::nullopt;
  figures.averaged_loss = mean_loss(*averaged);
  figures.averaged_accuracy = hit_rate(*averaged);
  return figures;
}

bool Evaluator::evaluate(measure::EpochRecord& epoch, std::int64_t test_passes) {
  if (!last_ || last_->updates != epoch.updates) {
    auto fresh = epoch;
    if (!evaluate_all(fresh, test_passes)) return false;
    last_ = fresh;
  }
  epoch.test_loss = last_->test_loss;
  epoch.test_accuracy = last_->test_accuracy;
  epoch.test_top_5 = last_->test_top_5;
  epoch.validation_loss = last_->validation_loss;
  epoch.validation_accuracy = last_->validation_accuracy;
  epoch.validation_top_5 = last_->validation_top_5;
  epoch.ema_test_loss = last_->ema_test_loss;
  epoch.ema_test_accuracy = last_->ema_test_accuracy;
  epoch.ema_validation_loss = last_->ema_validation_loss;
  epoch.ema_validation_accuracy = last_->ema_validation_accuracy;
  return true;
}

bool Evaluator::evaluate_all(measure::EpochRecord& epoch, std::int64_t test_passes) {
  if (!slow_.has_average()) return evaluate_once(epoch, test_passes);
  auto trained = epoch;
  if (!evaluate_once(trained, 2 * test_passes)) return false;
  measure::EpochRecord averaged;
  slow_.exchange(engine_);
  const bool is_done = evaluate_once(averaged, 0);
  slow_.exchange(engine_);
  if (!is_done) return false;
  epoch = trained;
  epoch.ema_test_loss = averaged.test_loss;
  epoch.ema_test_accuracy = averaged.test_accuracy;
  epoch.ema_validation_loss = averaged.validation_loss;
  epoch.ema_validation_accuracy = averaged.validation_accuracy;
  return true;
}

bool Evaluator::evaluate_once(measure::EpochRecord& epoch, std::int64_t test_passes) {
  const bool has_validation = job_.source.validation != nullptr;
  std::optional<EvaluatedSums> test, validation;
  if (test_policy(job_.options, has_validation) == TestSet::every) {
    test = evaluate_on(*job_.source.test, test_batches_, test_passes);
    if (!test) return false;
  }
  if (has_validation) {
    validation = evaluate_on(*job_.source.validation, validation_batches_, 0);
    if (!validation) return false;
  }
  if (test) {
    epoch.test_loss = mean_loss(*test);
    epoch.test_accuracy = hit_rate(*test);
    epoch.test_top_5 = top_5(*test);
  }
  if (validation) {
    epoch.validation_loss = mean_loss(*validation);
    epoch.validation_accuracy = hit_rate(*validation);
    epoch.validation_top_5 = top_5(*validation);
  }
  return true;
}

}  // namespace paceline::train
