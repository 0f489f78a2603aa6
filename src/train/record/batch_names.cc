#include "train/record/batch_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "data/sampler.h"

namespace paceline::train {

BatchNames batch_of(const Job& job, std::int64_t update) {
  const std::int64_t steps = job.resolved.steps_per_epoch, size = job.resolved.global_batch;
  const std::int64_t epoch = update / steps, step = update % steps;
  const data::Sampler sampler(job.source.train->size(), job.options.seed);
  BatchNames batch{.epoch = epoch + 1, .step = step + 1, .samples = {}};
  batch.samples.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) batch.samples.push_back(sampler.index(epoch, step * size + i));
  return batch;
}

std::string sentence(const BatchNames& batch) {
  constexpr std::size_t kShown = 8;
  const auto shown = std::span(batch.samples).first(std::min(kShown, batch.samples.size()));
  return fmt::format("the batch of step {} of epoch {} (training samples {}{})", batch.step, batch.epoch,
                     fmt::join(shown, ", "), batch.samples.size() > kShown ? ", ..." : "");
}

std::string list(const BatchNames& batch) { return fmt::format("{}", fmt::join(batch.samples, " ")); }

}  // namespace paceline::train
