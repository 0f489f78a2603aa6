#pragma once

/// Whether the images of a run lie on its devices, and how many.

#include <optional>
#include <string>

#include "data/dataset.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "train/memory.h"
#include "train/resolve.h"

namespace paceline::train {

/// What each engine keeps where it keeps images: the training set, and of the sets that the run evaluates the
/// largest part that a rank has.
[[nodiscard]] StoredImages images_to_store(const Options& options, const Resolved& resolved,
                                           const data::Source& source);

/// The memory of a run whose images have their place.
struct PlannedImages {
  graph::MemoryPlan plan;
  std::optional<bool> on_device;  ///< nothing where engines keep no images: there is no choice
  std::string sentence;           ///< what was decided and why, for plan and record; empty likewise
};

/// Puts the images on the devices where the engines take them and the plan of memory then fits, else leaves
/// them to the host: fills in `resolved.stored`. Either way gives the same bits.
/// Cost     one or two plans
[[nodiscard]] PlannedImages plan_images(const Options& options, Resolved& resolved, const graph::Graph& graph,
                                        const data::Source& source, const Backend& backend,
                                        const MemoryLimits& limits);

}  // namespace paceline::train
