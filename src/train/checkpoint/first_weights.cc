#include "train/checkpoint/first_weights.h"

#include <algorithm>
#include <vector>

#include "data/augment.h"
#include "graph/initialise.h"
#include "graph/whiten.h"

namespace paceline::train {
namespace {

/// Images [count][H][W][C] as evaluation would prepare them.
std::vector<float> images_to_whiten_by(const data::Source& source) {
  const data::Dataset& set = *source.train;
  const data::Augment augment(set.format(), {.mean = source.mean, .stddev = source.stddev});
  const std::int64_t count = std::min(set.size(), graph::kWhiteningImages);
  const auto values = static_cast<std::size_t>(set.format().bytes());
  std::vector<std::uint8_t> pixels(values);
  std::vector<float> images(static_cast<std::size_t>(count) * values);
  for (std::int64_t i = 0; i < count; ++i) {
    set.read(i * set.size() / count, pixels);
    augment.evaluate(pixels, std::span(images).subspan(static_cast<std::size_t>(i) * values, values));
  }
  return images;
}

}  // namespace

void first_weights(const Job& job, comm::Communicator& communicator, engine::Engine& engine) {
  graph::initialise(job.graph, engine.layout(), job.options.seed, engine.weights());
  if (graph::wants_whitening(job.graph)) {
    // Computed once and broadcast: sums of doubles may differ between different processors.
    if (communicator.rank() == 0)
      graph::whiten(job.graph, engine.layout(), images_to_whiten_by(job.source), engine.weights());
    communicator.broadcast(std::as_writable_bytes(engine.weights()), 0);
  }
  engine.weights_changed();
}

}  // namespace paceline::train
