#pragma once

/// Decides whether the images of a run are kept on its devices.

#include <optional>
#include <string>

#include "data/dataset.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "train/given/resolve.h"
#include "train/prepare/memory.h"

namespace paceline::train {

/// What each engine would keep: the training set, and for each set that is evaluated the largest part of a
/// rank.
[[nodiscard]] StoredImages images_to_store(const Options& options, const Resolved& resolved,
                                           const data::Source& source);

/// The memory plan of a run after deciding where its images are kept.
struct PlannedImages {
  graph::MemoryPlan plan;
  std::optional<bool> on_device;  ///< nothing if engines cannot keep images
  std::string sentence;           ///< the decision and its reason, for plan and record; empty if no choice
};

/// Keeps the images on the devices if engines support it and the memory plan then fits; otherwise the host
/// prepares them. Fills in `resolved.stored`. Either way gives the same bits.
///
/// Cost     one or two plans
[[nodiscard]] PlannedImages plan_images(const Options& options, Resolved& resolved, const graph::Graph& graph,
                                        const data::Source& source, const Backend& backend,
                                        const MemoryLimits& limits);

}  // namespace paceline::train
