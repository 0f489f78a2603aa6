#include "data/loader.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "data/class_balance.h"

namespace paceline::data {
namespace {

/// A batch never holds more than the part has, so a short part does not take the memory of a long batch.
std::int64_t slot_samples(const EvaluationOptions& options) {
  return std::min(options.batch, options.end - options.begin);
}

/// A seed for the order of one class, or of the turns.
std::uint64_t seed_of(std::uint64_t seed, std::uint64_t part) {
  base::Rng rng(seed, base::Purpose::balance, part);
  const std::uint64_t high = rng.next_u32();
  return high << 32 | rng.next_u32();
}

/// The position of batch `number` of a loader in the run.
struct BatchPosition {
  std::int64_t epoch;
  std::int64_t step;
  std::int64_t first_position;
};

}  // namespace

struct EvaluationBatches::Impl {
  const Dataset& dataset;
  const Augment& augment;
  const EvaluationOptions options;
  const std::int64_t batches_per_pass;
  std::int64_t yielded_in_pass = 0;
  EvaluationBatch current;
  std::vector<base::SampleDraw> draws;  ///< with draws: those of one batch
  std::int64_t drawn = 0;               ///< likewise: batches so far
  /// None for an empty part or with draws. Last member, because its threads use the others.
  std::optional<Prefetch> prefetch;

  Impl(const Dataset& set, const Augment& form, const EvaluationOptions& given)
      : dataset(set), augment(form), options(given), batches_per_pass(checked_batches(set, given)) {
    if (batches_per_pass == 0) return;
    if (options.draws) {
      base::expects(static_cast<std::int64_t>(options.labels.size()) == options.end - options.begin,
                    "with draws there is a label for every sample of the part");
      draws.resize(static_cast<std::size_t>(slot_samples(options) * options.views));
      return;
    }
    prefetch.emplace(PrefetchOptions{
        .format = set.format(),
        .batch = slot_samples(options),
        .views = options.views,
        .threads = options.threads,
        .prefetch = options.prefetch,
        .pool = options.pool,
        .samples =
            [this](std::int64_t number) { return std::min(options.batch, options.end - first(number)); },
        .prepare =
            [this](auto number, auto i, auto scratch, auto dst) {
              if (is_past_the_end(number)) return std::int32_t{0};  // a slot that is never handed out
              const auto values = static_cast<std::size_t>(dataset.format().bytes());
              const std::int32_t label = dataset.read(first(number) + i, scratch);
              if (options.views == 1) augment.evaluate(scratch, dst);
              for (int view = 0; options.views > 1 && view < options.views; ++view)
                augment.evaluate_view(scratch, view,
                                      dst.subspan(static_cast<std::size_t>(view) * values, values));
              return label;
            }});
  }

  static std::int64_t checked_batches(const Dataset& set, const EvaluationOptions& options) {
    base::expects(options.batch >= 1 && options.views >= 1 && options.views <= kMostViews,
                  "a batch holds a sample, which has views");
    base::expects(0 <= options.begin && options.begin <= options.end && options.end <= set.size(),
                  "0 <= begin <= end <= samples");
    return (options.end - options.begin + options.batch - 1) / options.batch;
  }

  [[nodiscard]] bool is_past_the_end(std::int64_t number) const {
    return options.passes > 0 && number >= options.passes * batches_per_pass;
  }

  [[nodiscard]] std::int64_t first(std::int64_t number) const {
    return options.begin + number % batches_per_pass * options.batch;
  }

  const EvaluationBatch* next() {
    if (yielded_in_pass == batches_per_pass) {
      yielded_in_pass = 0;
      return nullptr;
    }
    ++yielded_in_pass;
    if (options.draws) return draw(drawn++);
    const BatchView view = prefetch->next();
    base::expects(!is_past_the_end(view.number), "there are as many passes as were asked for");
    current = {.images = view.images, .labels = view.labels, .first = first(view.number)};
    return &current;
  }

  const EvaluationBatch* draw(std::int64_t number) {
    base::expects(!is_past_the_end(number), "there are as many passes as were asked for");
    const std::int64_t begin = first(number) - options.begin;
    const std::int64_t count = std::min(options.batch, options.end - first(number));
    std::size_t i = 0;
    for (std::int64_t n = 0; n < count; ++n)
      for (int view = 0; view < options.views; ++view)
        draws[i++] = Augment::view_draw(options.first_draw + begin + n, view);
    current = {
        .images = {},
        .draws = std::span(draws).first(i),
        .labels = options.labels.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)),
        .first = first(number)};
    return &current;
  }
};

EvaluationBatches::EvaluationBatches(const Dataset& dataset, const Augment& augment,
                                     EvaluationOptions options)
    : impl_(std::make_unique<Impl>(dataset, augment, options)) {}
EvaluationBatches::~EvaluationBatches() = default;

const EvaluationBatch* EvaluationBatches::next() { return impl_->next(); }

void EvaluationBatches::wait_until_prepared() {
  if (impl_->prefetch) impl_->prefetch->wait_until_prepared();
}

std::int64_t EvaluationBatches::samples() const { return impl_->options.end - impl_->options.begin; }

double EvaluationBatches::wait_s() const {
  return impl_->prefetch ? impl_->prefetch->statistics().wait_s : 0.0;
}

std::int64_t EvaluationBatches::planned_bytes(const ImageFormat& format, const EvaluationOptions& options) {
  if (options.begin == options.end) return 0;
  if (options.draws)
    return slot_samples(options) * options.views * static_cast<std::int64_t>(sizeof(base::SampleDraw));
  return Prefetch::planned_bytes(format, slot_samples(options), options.views, options.threads,
                                 options.prefetch);
}

Sampler::Sampler(std::int64_t size, std::uint64_t seed, Order order)
    : size_(size), seed_(seed), order_(order) {}

Sampler::Sampler(std::int64_t size, std::shared_ptr<const EpochOrder> given, Order order)
    : size_(size), order_(order), given_(std::move(given)) {}

std::int64_t Sampler::index(std::int64_t epoch, std::int64_t position) const {
  base::expects(position >= 0 && position < size_, "0 <= position < size");
  if (order_ == Order::as_stored) return position;
  if (order_ == Order::shuffled_once) epoch = 0;
  if (given_) return given_->index(epoch, position);
  // The epoch is a coordinate of the generator and never added to the seed: with seed + epoch, run 1 epoch 0
  // would repeat run 0 epoch 1.
  return Permutation(size_,
                     base::Rng(seed_, base::Purpose::shuffle, static_cast<std::uint64_t>(epoch)))(position);
}

BalancedOrder::BalancedOrder(const Dataset& set, int classes, std::uint64_t seed, std::int64_t positions)
    : turns_(0, 0), positions_(positions) {
  base::expects(positions >= 1 && set.size() >= 1, "there are samples and an epoch draws some");
  const auto sizes = class_sizes(set, classes);
  std::vector<std::int64_t> next;  // place in members_ of the next sample of each class
  std::int64_t first = 0;
  for (std::size_t c = 0; c < sizes.size(); first += sizes[c++]) {
    next.push_back(first);
    if (sizes[c] > 0) classes_.push_back({first, Sampler(sizes[c], seed_of(seed, c + 1))});
  }
  members_.resize(static_cast<std::size_t>(set.size()));
  for (std::int64_t i = 0; i < set.size(); ++i)
    members_[static_cast<std::size_t>(next[static_cast<std::size_t>(set.label(i))]++)] = i;
  turns_ = Sampler(std::ssize(classes_), seed_of(seed, 0));
}

std::int64_t BalancedOrder::index(std::int64_t epoch, std::int64_t position) const {
  const std::int64_t place = epoch * positions_ + position;
  const std::int64_t round = place / turns_.size();
  const OfClass& own = classes_[static_cast<std::size_t>(turns_.index(round, place % turns_.size()))];
  const std::int64_t size = own.order.size();
  return members_[static_cast<std::size_t>(own.first + own.order.index(round / size, round % size))];
}

struct Loader::Impl {
  const Dataset& dataset;
  const Sampler sampler;
  const Augment augment;
  const LoaderOptions options;
  const std::int64_t steps_per_epoch;
  Batch current;
  // With draws:
  std::vector<base::SampleDraw> draws;
  std::vector<std::int32_t> labels;
  LoaderStatistics drawn;
  std::optional<Prefetch> prefetch;  // without draws. Last member, because its threads use the others

  Impl(const Dataset& set, Sampler order, Augment form, const LoaderOptions& given)
      : dataset(set),
        sampler(order),
        augment(std::move(form)),
        options(given),
        steps_per_epoch(checked_steps(set, order, given)) {
    if (options.draws) {
      base::expects(static_cast<std::int64_t>(options.labels.size()) == set.size() && options.mix.is_none(),
                    "with draws there is a label for every sample, and none is mixed");
      draws.resize(static_cast<std::size_t>(options.local_batch));
      labels.resize(draws.size());
      return;
    }
    PrefetchOptions wanted{.format = set.format(),
                           .batch = given.local_batch,
                           .threads = given.threads,
                           .prefetch = given.prefetch,
                           .pool = given.pool,
                           .samples = [this](std::int64_t) { return options.local_batch; },
                           .prepare = [this](auto number, auto i, auto scratch,
                                             auto dst) { return prepare(number, i, scratch, dst); }};
    if (!options.mix.is_none())
      wanted.mix = [this](const auto& piece, auto image, auto pixels) { mix_pairs(piece, image, pixels); };
    prefetch.emplace(std::move(wanted));
  }

  static std::int64_t checked_steps(const Dataset& set, const Sampler& sampler,
                                    const LoaderOptions& options) {
    base::expects(sampler.size() == set.size(), "the sampler orders this data set");
    base::expects(options.local_batch >= 1 && options.first >= 0 &&
                      options.first + options.local_batch <= options.global_batch,
                  "the local batch lies inside the global batch");
    base::expects(options.global_batch <= set.size(), "global batch <= samples");
    const std::int64_t steps = set.size() / options.global_batch;
    base::expects(options.start_epoch >= 0 && options.start_step >= 0 && options.start_step <= steps,
                  "the loader starts inside an epoch or at its end");
    return steps;
  }

  [[nodiscard]] BatchPosition position_of(std::int64_t number) const {
    const std::int64_t step = options.start_step + number;
    const std::int64_t in_epoch = step % steps_per_epoch;
    return {options.start_epoch + step / steps_per_epoch, in_epoch,
            in_epoch * options.global_batch + options.first};
  }

  std::int32_t prepare(std::int64_t number, std::int64_t i, std::span<std::uint8_t> scratch,
                       std::span<float> dst) const {
    const BatchPosition at = position_of(number);
    const std::int64_t position = at.first_position + i;
    return augment.read_train(dataset, sampler.index(at.epoch, position), at.epoch, position, scratch, dst);
  }

  /// `other`: scratch for an image, `pixels` for its stored form.
  void mix_pairs(const PreparedPiece& piece, std::span<float> other, std::span<std::uint8_t> pixels) const {
    const BatchPosition at = position_of(piece.number);
    const auto image = [&](std::size_t i) { return piece.images.subspan(i * other.size(), other.size()); };
    for (std::size_t i = 0; i < piece.labels.size(); ++i) {
      const std::int64_t position = at.first_position + piece.begin + static_cast<std::int64_t>(i);
      const std::int64_t partner = position ^ 1;
      piece.second_labels[i] = {piece.labels[i], 0};
      if (partner >= dataset.size()) continue;
      const PairMix pair = draw_pair(options.mix, dataset.format(), at.epoch, position / 2);
      if (partner > position && i + 1 < piece.labels.size()) {
        std::ranges::copy(image(i), other.begin());
        mix_into(dataset.format(), pair, image(i + 1), image(i));
        piece.second_labels[i] = {piece.labels[i + 1], pair.share};
        mix_into(dataset.format(), pair, other, image(i + 1));
        piece.second_labels[i + 1] = {piece.labels[i], pair.share};
        ++i;
      } else {
        const auto label =
            augment.read_train(dataset, sampler.index(at.epoch, partner), at.epoch, partner, pixels, other);
        mix_into(dataset.format(), pair, other, image(i));
        piece.second_labels[i] = {label, pair.share};
      }
    }
  }

  const Batch& next() {
    if (options.draws) return draw();
    const BatchView view = prefetch->next();
    const BatchPosition at = position_of(view.number);
    current = {.images = view.images,
               .labels = view.labels,
               .second_labels = view.second_labels,
               .epoch = at.epoch,
               .step = at.step,
               .first_position = at.first_position};
    return current;
  }

  /// The caller prepares the batch itself, as without threads: all the time counts both as preparation and as
  /// waiting.
  const Batch& draw() {
    const auto started = base::Clock::now();
    const double processor_before = base::thread_processor_s();
    const BatchPosition at = position_of(drawn.batches++);
    for (std::size_t i = 0; i < draws.size(); ++i) {
      const std::int64_t position = at.first_position + static_cast<std::int64_t>(i);
      const std::int64_t index = sampler.index(at.epoch, position);
      draws[i] = augment.draw(index, at.epoch, position);
      labels[i] = options.labels[static_cast<std::size_t>(index)];
    }
    current = {.images = {},
               .draws = draws,
               .labels = labels,
               .epoch = at.epoch,
               .step = at.step,
               .first_position = at.first_position};
    const double seconds = base::seconds_since(started);
    drawn.prepare_s += seconds;
    drawn.processor_s += base::thread_processor_s() - processor_before;
    drawn.wait_s += seconds;
    ++drawn.waits;
    return current;
  }
};

Loader::Loader(const Dataset& dataset, Sampler sampler, Augment augment, LoaderOptions options)
    : impl_(std::make_unique<Impl>(dataset, sampler, std::move(augment), options)) {}
Loader::~Loader() = default;

const Batch& Loader::next() { return impl_->next(); }
std::int64_t Loader::steps_per_epoch() const { return impl_->steps_per_epoch; }
std::int64_t Loader::dropped_per_epoch() const {
  return impl_->dataset.size() - impl_->steps_per_epoch * impl_->options.global_batch;
}

LoaderStatistics Loader::statistics() const {
  if (!impl_->prefetch) return impl_->drawn;
  const auto counted = impl_->prefetch->statistics();
  return {.batches = counted.batches,
          .prepare_s = counted.prepare_s,
          .processor_s = counted.processor_s,
          .wait_s = counted.wait_s,
          .waits = counted.waits,
          .ready = counted.ready};
}

void Loader::wait_until_prepared() {
  if (impl_->prefetch) impl_->prefetch->wait_until_prepared();
}
bool Loader::is_waiting() const { return impl_->prefetch && impl_->prefetch->is_waiting(); }

std::int64_t Loader::planned_bytes(const ImageFormat& format, const LoaderOptions& options) {
  if (options.draws)
    return options.local_batch * static_cast<std::int64_t>(sizeof(base::SampleDraw) + sizeof(std::int32_t));
  return Prefetch::planned_bytes(format, options.local_batch, 1, options.threads, options.prefetch,
                                 !options.mix.is_none());
}

}  // namespace paceline::data
