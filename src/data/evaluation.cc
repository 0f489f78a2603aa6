#include "data/evaluation.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"

namespace paceline::data {
namespace {

/// A batch never holds more than the part has, so a short part does not take the memory of a long batch.
std::int64_t slot_samples(const EvaluationOptions& options) {
  return std::min(options.batch, options.end - options.begin);
}

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

}  // namespace paceline::data
