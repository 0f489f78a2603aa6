#include "train/prepare/model_check.h"

#include <fmt/format.h>

#include "base/error.h"

namespace paceline::train {
namespace {

/// Samples that share mean and variance, and what they are called.
struct Group {
  std::int64_t samples = 0;
  std::string name;
};

Group group_of(const Options& options, const Resolved& resolved) {
  switch (options.batch_norm) {
    case engine::BatchNormMode::ghost:
      return {options.ghost_size, fmt::format("--bn ghost:{}", options.ghost_size)};
    case engine::BatchNormMode::synchronised:
      return {resolved.global_batch, fmt::format("a global batch of {}", resolved.global_batch)};
    case engine::BatchNormMode::local:
      break;
  }
  if (options.shard > 0) return {resolved.engine_batch, fmt::format("--shard {}", options.shard)};
  return {resolved.engine_batch, fmt::format("a local batch of {}", resolved.engine_batch)};
}

}  // namespace

void require_trainable(const graph::Graph& graph, const Options& options, const Resolved& resolved) {
  if (graph.trainable_elements() == 0)
    base::fail(
        base::ErrorKind::usage,
        "model '{}' has no weight that is trained; add a layer that has one, such as dense, or unfreeze one",
        graph.name);
  const auto group = group_of(options, resolved);
  for (const auto& node : graph.nodes) {
    if (node.as<graph::BatchNorm>() == nullptr) continue;
    if (group.samples * node.shape.height * node.shape.width > 1) continue;
    base::fail(
        base::ErrorKind::usage,
        "batch_norm '{}': {} gives it one value per channel (images of {}x{} there), whose mean is itself "
        "and whose variance is 0, so that nothing can be learned; take a larger batch, or put the batch "
        "norm before the pooling",
        node.name, group.name, node.shape.height, node.shape.width);
  }
}

}  // namespace paceline::train
