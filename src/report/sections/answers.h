#pragma once

/// Makes the longer answers of a report's summary: which batch, how many workers, what was not measured.

#include <string>
#include <string_view>
#include <vector>

#include "report/conclusions.h"
#include "report/document.h"

namespace paceline::report {

/// "Not measured: `paceline sweep` answers it.", or if the study was stopped before: "Not measured yet: ...".
[[nodiscard]] std::string not_measured(const Conclusions& conclusions, std::string_view kind);
/// " So far: 1 of 3 batches was not measured when the study was stopped."; empty if it was not stopped.
[[nodiscard]] std::string so_far(const Conclusions& conclusions, std::string_view kind,
                                 std::string_view noun);

/// Identifies the figures if several models, set-ups or versions measured the same sizes: "version 0.2.0",
/// "resnet8-cifar, 2 processes on 2 nodes". Empty if there is one. `group`: the cell's group, or null.
[[nodiscard]] std::string which_of_several(const Conclusions& conclusions,
                                           const analysis::ScalingGroup* group, const std::string& subject,
                                           const analysis::Cell& cell);

/// "Which batch size?": every sweep by itself, and of several sweeps of one model the best.
void answer_batch(std::vector<Block>& blocks, const Conclusions& conclusions);

/// "How many workers?": weak and strong scaling separately, what is not decided, and which rows give no
/// answer and why.
void answer_workers(std::vector<Block>& blocks, const Conclusions& conclusions);

}  // namespace paceline::report
