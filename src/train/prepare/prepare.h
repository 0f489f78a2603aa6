#pragma once

/// Prepares a run before its first worker starts: data, graph, checkpoint, memory plan.

#include <optional>

#include "data/dataset.h"
#include "graph/graph.h"
#include "measure/record.h"
#include "train/checkpoint/earlier_epochs.h"
#include "train/checkpoint/resume_point.h"
#include "train/given/backend.h"
#include "train/given/options.h"
#include "train/given/resolve.h"

namespace paceline::train {

/// Errors   Error(usage) for options that do not suit the data set; Error(data)
[[nodiscard]] data::Source open_data(const Options& options, const Backend& backend);
[[nodiscard]] RunConditions circumstances_of(const data::Source& source, const Backend& backend);
/// Errors   Error(usage): there is no such model, or it does not suit the options
[[nodiscard]] graph::Graph make_graph(const Options& options, const data::Source& source);

/// What is known of a run before its first worker starts.
struct Prepared {
  bool is_finished = false;  ///< --resume auto: nothing is left to do; the other fields are empty
  data::Source source = {};
  graph::Graph graph = {};
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
