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

/// Leaves them as they are if the set was not evaluated.
void fill_in(const std::optional<EvaluatedSums>& sums, std::optional<double>& loss,
             std::optional<double>& accuracy) {
  if (!sums) return;
  loss = sums->loss / static_cast<double>(sums->samples);
  accuracy = static_cast<double>(sums->correct) / static_cast<double>(sums->samples);
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
    : source_(job.source), engine_(engine) {
  const auto& [train, validation, test] = job.resolved.stored;
  base::expects(job.resolved.stored.total() > 0, "the engine has room for images");
  train_.room = train;
  validation_ = {.first = train, .room = validation};
  test_ = {.first = train + validation, .room = test};
  engine.set_byte_values(augment.byte_values());
}

std::int64_t ImageStore::planned_bytes(const StoredImages& stored) {
  if (stored.total() == 0) return 0;
  return stored.total() * static_cast<std::int64_t>(sizeof(std::int32_t)) + kChunkBytes;
}

const ImageStore::Part& ImageStore::part_of(const data::Dataset& set, std::int64_t begin, std::int64_t end) {
  Part& part = &set == source_.train.get() ? train_ : &set == source_.test.get() ? test_ : validation_;
  base::expects(end - begin <= part.room, "there is room for the part");
  if (!part.is_there) fill(part, set, begin, end);
  base::expects(static_cast<std::int64_t>(part.labels.size()) == end - begin, "a part stays the same");
  return part;
}

void ImageStore::fill(Part& part, const data::Dataset& set, std::int64_t begin, std::int64_t end) {
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
}

data::EvaluationOptions evaluation_options(const Options& options, const Resolved& resolved,
                                           std::int64_t samples, int rank) {
  const int views = options.test_views;
  const std::int64_t batch = resolved.engine_batch / views;
  const auto part = data::evaluation_part(samples, rank, resolved.workers, options.shard > 0 ? batch : 1);
  return {.begin = part.begin, .end = part.end, .batch = batch, .views = views, .threads = 0};
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

engine::LossSums evaluate_samples(data::EvaluationBatches& batches, int views, engine::Engine& engine,
                                  const std::stop_token& stop, const TakeSample& take) {
  const auto classes = static_cast<std::size_t>(engine.graph().classes());
  engine::LossSums sums;
  std::vector<double> logits;
  while (const auto* batch = stop.stop_requested() ? nullptr : batches.next()) {
    const int count = static_cast<int>(batch->count());
    if (take) logits.resize(batch->labels.size() * classes);
    sums += batch->draws.empty() ? engine.evaluate(batch->images, batch->labels, count, views, logits)
                                 : engine.evaluate_draws(batch->draws, batch->labels, count, views, logits);
    for (std::size_t i = 0; take && i < batch->labels.size(); ++i)
      take(batch->first + static_cast<std::int64_t>(i), batch->labels[i],
           std::span(logits).subspan(i * classes, classes));
  }
  return sums;
}

std::optional<EvaluatedSums> evaluate(data::EvaluationBatches& batches, int views, engine::Engine& engine,
                                      comm::Communicator& communicator, const std::stop_token& stop) {
  const bool has_five = engine.graph().classes() >= kLeastForTopFive;
  double in_five = 0;
  TakeSample count;
  if (has_five)
    count = [&](std::int64_t /*index*/, std::int32_t label, std::span<const double> logits) {
      in_five += is_in_five(logits, label) ? 1 : 0;
    };
  const auto sums = evaluate_samples(batches, views, engine, stop, count);
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
    refuse_options(
        "data '{}': model '{}' has a layer over all pixels, so that it takes images of {}x{} alone, and "
        "none of {}x{}; leave eval-size out, or take a model that ends with a global pool",
        source.spec, graph.name, trained.height, trained.width, evaluated.height, evaluated.width);
  return other;
}

Evaluator::Evaluator(const Job& job, const data::Augment& augment, engine::Engine& engine,
                     comm::Communicator& communicator, ImageStore* store, SlowWeights& slow)
    : job_(job), augment_(augment), engine_(engine), communicator_(communicator), store_(store), slow_(slow) {
  if (job.evaluation_graph == nullptr || job.options.window_steps != 0) return;
  other_engine_ = job.backend.machine->compile(
      *job.evaluation_graph, evaluation_compile_options(job.options, job.resolved, job.backend,
                                                        job.local_rank(communicator.rank())));
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
  const auto reads = job_.test_reads.reads();
  if (!batches) {
    auto options = evaluation_options(job_.options, job_.resolved, set.size(), communicator_.rank());
    options.pool = &job_.pool;
    options.passes = passes;
    if (store_ != nullptr) {
      const auto& part = store_->part_of(set, options.begin, options.end);
      options.draws = true;
      options.first_draw = part.first;
      options.labels = part.labels;
    }
    batches.emplace(set, other_augment_ ? *other_augment_ : augment_, options);
  }
  // The set is evaluated once more, but not read again: the store has kept it since the first time.
  if (store_ != nullptr && &set == &job_.test_reads && job_.test_reads.reads() == reads)
    job_.test_reads.count(batches->samples());
  const auto sums =
      train::evaluate(*batches, job_.options.test_views, engine_now(), communicator_, job_.stop);
  if (!sums) batches.reset();  // it stopped in the middle of a pass
  return sums;
}

template <typename Evaluate>
auto Evaluator::with_average(const Evaluate& evaluate) {
  slow_.exchange(engine_);
  auto result = evaluate();
  slow_.exchange(engine_);
  return result;
}

std::optional<measure::TestSetRecord> Evaluator::test() {
  const auto test = evaluate_on(*job_.source.test, test_batches_, slow_.has_average() ? 2 : 1);
  if (!test) return std::nullopt;
  measure::TestSetRecord result;
  fill_in(test, result.loss, result.accuracy);
  result.top_5 = top_5(*test);
  if (!slow_.has_average()) return result;
  const auto averaged = with_average([this] { return evaluate_on(*job_.source.test, test_batches_, 0); });
  if (!averaged) return std::nullopt;
  fill_in(averaged, result.ema_loss, result.ema_accuracy);
  return result;
}

bool Evaluator::evaluate(measure::EpochRecord& epoch, std::int64_t test_passes) {
  if (last_update_ != epoch.updates) {
    const bool has_average = slow_.has_average();
    const auto trained = evaluate_sets(has_average ? 2 * test_passes : test_passes);
    if (!trained) return false;
    const auto averaged = has_average ? with_average([this] { return evaluate_sets(0); }) : Sums{};
    if (!averaged) return false;
    last_update_ = epoch.updates;
    last_ = *trained;
    last_averaged_ = *averaged;
  }
  fill_in(last_.test, epoch.test_loss, epoch.test_accuracy);
  fill_in(last_.validation, epoch.validation_loss, epoch.validation_accuracy);
  fill_in(last_averaged_.test, epoch.ema_test_loss, epoch.ema_test_accuracy);
  fill_in(last_averaged_.validation, epoch.ema_validation_loss, epoch.ema_validation_accuracy);
  if (last_.test) epoch.test_top_5 = top_5(*last_.test);
  if (last_.validation) epoch.validation_top_5 = top_5(*last_.validation);
  return true;
}

std::optional<Evaluator::Sums> Evaluator::evaluate_sets(std::int64_t test_passes) {
  const bool has_validation = job_.source.validation != nullptr;
  Sums sums;
  if (test_policy(job_.options, has_validation) == TestSet::every) {
    sums.test = evaluate_on(*job_.source.test, test_batches_, test_passes);
    if (!sums.test) return std::nullopt;
  }
  if (has_validation) {
    sums.validation = evaluate_on(*job_.source.validation, validation_batches_, 0);
    if (!sums.validation) return std::nullopt;
  }
  return sums;
}

}  // namespace paceline::train
