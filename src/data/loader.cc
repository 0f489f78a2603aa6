#include "data/loader.h"

#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/processor_time.h"

namespace paceline::data {
namespace {

/// The position of batch `number` of a loader in the run.
struct BatchPosition {
  std::int64_t epoch;
  std::int64_t step;
  std::int64_t first_position;
};

}  // namespace

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
      base::expects(static_cast<std::int64_t>(options.labels.size()) == set.size(),
                    "with draws there is a label for every sample");
      draws.resize(static_cast<std::size_t>(options.local_batch));
      labels.resize(draws.size());
      return;
    }
    prefetch.emplace(
        PrefetchOptions{.format = set.format(),
                        .batch = given.local_batch,
                        .threads = given.threads,
                        .prefetch = given.prefetch,
                        .pool = given.pool,
                        .samples = [this](std::int64_t) { return options.local_batch; },
                        .prepare = [this](auto number, auto i, auto scratch,
                                          auto dst) { return prepare(number, i, scratch, dst); }});
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

  const Batch& next() {
    if (options.draws) return draw();
    const BatchView view = prefetch->next();
    const BatchPosition at = position_of(view.number);
    current = {.images = view.images,
               .labels = view.labels,
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
  return Prefetch::planned_bytes(format, options.local_batch, 1, options.threads, options.prefetch);
}

}  // namespace paceline::data
