#pragma once

/// Prepares a run before its first worker starts: data, graph, checkpoint, memory plan.

#include <optional>
#include <string>

#include "data/dataset.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "measure/record.h"
#include "train/checkpoint/earlier_epochs.h"
#include "train/checkpoint/resume_point.h"
#include "train/given/backend.h"
#include "train/given/options.h"
#include "train/given/resolve.h"
#include "train/prepare/memory.h"

namespace paceline::train {

/// Refuses a model without trainable weights, and one with a batch norm over a single value per channel: it
/// would subtract each value from itself and output zero. PyTorch refuses that too.
///
/// Errors   Error(usage): the layer, the sizes, and what to change
void require_trainable(const graph::Graph& graph, const Options& options, const Resolved& resolved);

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
[[nodiscard]] PlannedImages plan_images(const Options& options, Resolved& resolved, const RunParts& parts);

/// Errors   Error(usage) for options that do not suit the data set; Error(data)
[[nodiscard]] data::Source open_data(const Options& options, const Backend& backend);
[[nodiscard]] RunConditions circumstances_of(const data::Source& source, const Backend& backend);
/// Errors   Error(usage): there is no such model, or it does not suit the options
[[nodiscard]] graph::Graph make_graph(const Options& options, const data::Source& source);
/// What the file of --weights gives the model, or that a resumed training does not read it; "" without it.
///
/// Errors   as check_given_weights()
[[nodiscard]] std::string sentence_on_given_weights(const Options& options, const graph::Graph& graph);

/// What is known of a run before its first worker starts.
struct Prepared {
  bool is_finished = false;  ///< --resume auto: nothing is left to do; the other fields are empty
  data::Source source = {};
  graph::Graph graph = {};
  std::optional<graph::Graph> evaluation_graph = {};  ///< Job::evaluation_graph
  Resolved resolved = {};
  std::optional<ResumePoint> resume = {};
  Earlier earlier = {};
  measure::Record record = {};  ///< as it begins
};

/// Finds every error that can be found without workers: in options, data, checkpoint and memory plan.
///
/// Errors   as run()
[[nodiscard]] Prepared prepare(const Options& options, const Backend& backend);

}  // namespace paceline::train
