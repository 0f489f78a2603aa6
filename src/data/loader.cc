#include "data/loader.h"

#include <algorithm>
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
  return base::Rng(seed, base::Purpose::balance, part).next_u64();
}

std::int64_t checked_batches(const Dataset& set, const EvaluationOptions& options) {
  base::expects(options.batch >= 1 && options.views >= 1 && options.views <= kMostViews,
                "a batch holds a sample, which has views");
  base::expects(0 <= options.begin && options.begin <= options.end && options.end <= set.size(),
                "0 <= begin <= end <= samples");
  return (options.end - options.begin + options.batch - 1) / options.batch;
}

std::int64_t checked_steps(const Dataset& set, const Sampler& sampler, const LoaderOptions& options) {
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

}  // namespace

EvaluationBatches::EvaluationBatches(const Dataset& dataset, const Augment& augment,
                                     EvaluationOptions options)
    : dataset_(dataset),
      augment_(augment),
      options_(options),
      batches_per_pass_(checked_batches(dataset, options)) {
  if (batches_per_pass_ == 0) return;
  if (options.draws) {
    base::expects(static_cast<std::int64_t>(options.labels.size()) == samples(),
                  "with draws there is a label for every sample of the part");
    draws_.resize(static_cast<std::size_t>(slot_samples(options) * options.views));
    return;
  }
  prefetch_.emplace(PrefetchOptions{
      .format = dataset.format(),
      .batch = slot_samples(options),
      .views = options.views,
      .threads = options.threads,
      .prefetch = options.prefetch,
      .pool = options.pool,
      .samples =
          [this](std::int64_t number) { return std::min(options_.batch, options_.end - first(number)); },
      .prepare = [this](auto number, auto i, auto scratch,
                        auto dst) { return prepare(number, i, scratch, dst); }});
}

bool EvaluationBatches::is_past_the_end(std::int64_t number) const {
  return options_.passes > 0 && number >= options_.passes * batches_per_pass_;
}

/// The first sample of batch `number`.
std::int64_t EvaluationBatches::first(std::int64_t number) const {
  return options_.begin + number % batches_per_pass_ * options_.batch;
}

std::int32_t EvaluationBatches::prepare(std::int64_t number, std::int64_t i, std::span<std::uint8_t> scratch,
                                        std::span<float> dst) const {
  if (is_past_the_end(number)) return 0;  // a slot that is never handed out
  const auto values = static_cast<std::size_t>(dataset_.format().bytes());
  const std::int32_t label = dataset_.read(first(number) + i, scratch);
  for (int view = 0; view < options_.views; ++view)
    augment_.show(scratch, Augment::view_draw(0, view),
                  dst.subspan(static_cast<std::size_t>(view) * values, values));
  return label;
}

const EvaluationBatch* EvaluationBatches::next() {
  if (yielded_in_pass_ == batches_per_pass_) {
    yielded_in_pass_ = 0;
    return nullptr;
  }
  ++yielded_in_pass_;
  const BatchView view =
      options_.draws ? BatchView{.number = drawn_++, .images = {}, .labels = {}} : prefetch_->next();
  base::expects(!is_past_the_end(view.number), "there are as many passes as were asked for");
  current_ = {.images = view.images, .labels = view.labels, .first = first(view.number)};
  if (options_.draws) draw();
  return &current_;
}

/// The current batch as draws.
void EvaluationBatches::draw() {
  const std::int64_t begin = current_.first - options_.begin;
  const std::int64_t count = std::min(options_.batch, options_.end - current_.first);
  std::size_t i = 0;
  for (std::int64_t n = 0; n < count; ++n)
    for (int view = 0; view < options_.views; ++view)
      draws_[i++] = Augment::view_draw(options_.first_draw + begin + n, view);
  current_.draws = std::span(draws_).first(i);
  current_.labels = options_.labels.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

void EvaluationBatches::wait_until_prepared() {
  if (prefetch_) prefetch_->wait_until_prepared();
}

double EvaluationBatches::wait_s() const { return prefetch_ ? prefetch_->statistics().wait_s : 0.0; }

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
  return Permutation(size_, shuffle_rng(seed_, epoch))(position);
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

Loader::Loader(const Dataset& dataset, Sampler sampler, Augment augment, LoaderOptions options)
    : dataset_(dataset),
      sampler_(std::move(sampler)),
      augment_(std::move(augment)),
      options_(options),
      steps_per_epoch_(checked_steps(dataset, sampler_, options)) {
  if (options.draws) {
    base::expects(static_cast<std::int64_t>(options.labels.size()) == dataset.size() && options.mix.is_none(),
                  "with draws there is a label for every sample, and none is mixed");
    draws_.resize(static_cast<std::size_t>(options.local_batch));
    labels_.resize(draws_.size());
    return;
  }
  PrefetchOptions wanted{.format = dataset.format(),
                         .batch = options.local_batch,
                         .threads = options.threads,
                         .prefetch = options.prefetch,
                         .pool = options.pool,
                         .samples = [this](std::int64_t) { return options_.local_batch; },
                         .prepare =
                             [this](auto number, auto i, auto scratch, auto dst) {
                               const Batch at = place_of(number);
                               return read(at, at.first_position + i, scratch, dst);
                             }};
  if (!options.mix.is_none())
    wanted.mix = [this](const auto& piece, auto image, auto pixels) { mix_pairs(piece, image, pixels); };
  prefetch_.emplace(std::move(wanted));
}

Batch Loader::place_of(std::int64_t number) const {
  const std::int64_t step = options_.start_step + number;
  const std::int64_t in_epoch = step % steps_per_epoch_;
  return {.images = {},
          .labels = {},
          .epoch = options_.start_epoch + step / steps_per_epoch_,
          .step = in_epoch,
          .first_position = in_epoch * options_.global_batch + options_.first};
}

/// Prepares the sample at `position` of the epoch of `at`; returns its label.
std::int32_t Loader::read(const Batch& at, std::int64_t position, std::span<std::uint8_t> scratch,
                          std::span<float> dst) const {
  return augment_.read_train(dataset_, sampler_.index(at.epoch, position), at.epoch, position, scratch, dst);
}

/// `other`: scratch for an image, `pixels` for its stored form.
void Loader::mix_pairs(const PreparedPiece& piece, std::span<float> other,
                       std::span<std::uint8_t> pixels) const {
  const Batch at = place_of(piece.number);
  const auto image = [&](std::size_t i) { return piece.images.subspan(i * other.size(), other.size()); };
  for (std::size_t i = 0; i < piece.labels.size(); ++i) {
    const std::int64_t position = at.first_position + piece.begin + static_cast<std::int64_t>(i);
    const std::int64_t partner = position ^ 1;
    piece.second_labels[i] = {piece.labels[i], 0};
    if (partner >= dataset_.size()) continue;
    const PairMix pair = draw_pair(options_.mix, dataset_.format(), at.epoch, position / 2);
    if (partner > position && i + 1 < piece.labels.size()) {
      std::ranges::copy(image(i), other.begin());
      mix_into(dataset_.format(), pair, image(i + 1), image(i));
      piece.second_labels[i] = {piece.labels[i + 1], pair.share};
      mix_into(dataset_.format(), pair, other, image(i + 1));
      piece.second_labels[i + 1] = {piece.labels[i], pair.share};
      ++i;
    } else {
      const auto label = read(at, partner, pixels, other);
      mix_into(dataset_.format(), pair, other, image(i));
      piece.second_labels[i] = {label, pair.share};
    }
  }
}

const Batch& Loader::next() {
  if (options_.draws) {
    draw();
    return current_;
  }
  const BatchView view = prefetch_->next();
  current_ = place_of(view.number);
  current_.images = view.images;
  current_.labels = view.labels;
  current_.second_labels = view.second_labels;
  return current_;
}

/// The caller prepares the batch itself, as without threads: all the time counts both as preparation and as
/// waiting.
void Loader::draw() {
  const auto started = base::Clock::now();
  const double processor_before = base::thread_processor_s();
  current_ = place_of(drawn_.batches++);
  current_.draws = draws_;
  current_.labels = labels_;
  for (std::size_t i = 0; i < draws_.size(); ++i) {
    const std::int64_t position = current_.first_position + static_cast<std::int64_t>(i);
    const std::int64_t index = sampler_.index(current_.epoch, position);
    draws_[i] = augment_.draw(index, current_.epoch, position);
    labels_[i] = options_.labels[static_cast<std::size_t>(index)];
  }
  const double seconds = base::seconds_since(started);
  drawn_.prepare_s += seconds;
  drawn_.processor_s += base::thread_processor_s() - processor_before;
  drawn_.wait_s += seconds;
  ++drawn_.waits;
}

LoaderStatistics Loader::statistics() const { return prefetch_ ? prefetch_->statistics() : drawn_; }

void Loader::wait_until_prepared() {
  if (prefetch_) prefetch_->wait_until_prepared();
}

std::int64_t Loader::planned_bytes(const ImageFormat& format, const LoaderOptions& options) {
  if (options.draws)
    return options.local_batch * static_cast<std::int64_t>(sizeof(base::SampleDraw) + sizeof(std::int32_t));
  return Prefetch::planned_bytes(format, options.local_batch, 1, options.threads, options.prefetch,
                                 !options.mix.is_none());
}

}  // namespace paceline::data
