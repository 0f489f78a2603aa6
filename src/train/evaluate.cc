#include "train/evaluate.h"

#include <array>

namespace paceline::train {

data::EvaluationOptions evaluation_options(std::int64_t test_samples, std::int64_t batch, int rank,
                                           int world) {
  const auto part = data::evaluation_part(test_samples, rank, world);
  return {.begin = part.begin, .end = part.end, .batch = batch};
}

engine::LossSums evaluate(data::EvaluationBatches& batches, engine::Engine& engine,
                          comm::Communicator& communicator) {
  engine::LossSums sums;
  while (const auto* batch = batches.next())
    sums += engine.evaluate(batch->images, batch->labels, static_cast<int>(batch->count()));
  return reduce_sums(sums, communicator);
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

}  // namespace paceline::train
