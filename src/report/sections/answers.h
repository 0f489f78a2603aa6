#pragma once

/// Answers of the summary that are long enough for files of their own.

#include <string>
#include <string_view>
#include <vector>

#include "report/conclusions.h"
#include "report/document.h"

namespace paceline::report {

/// "Not measured: `paceline sweep` answers it.", or where a study was stopped before: "Not measured yet:
/// ...".
[[nodiscard]] std::string not_measured(const Conclusions& conclusions, std::string_view kind);
/// " So far: 1 of 3 batches was not measured when the study was stopped."; empty of a study that was not.
[[nodiscard]] std::string so_far(const Conclusions& conclusions, std::string_view kind,
                                 std::string_view noun);

/// Whose figures these are where several models, set-ups or versions measured the same sizes: "version
/// 0.2.0", "resnet8-cifar, 2 processes on 2 nodes". Empty where there is one. `group`: that the cell is in,
/// or null.
[[nodiscard]] std::string which_of_several(const Conclusions& conclusions,
                                           const analysis::ScalingGroup* group, const std::string& subject,
                                           const analysis::Cell& cell);

/// "Which batch size?": every sweep for itself, and of several of one model the best of all.
void answer_batch(std::vector<Block>& blocks, const Conclusions& conclusions);

/// "How many workers?": weak and strong scaling apart, what is not decided, and which rows say nothing and
/// why.
void answer_workers(std::vector<Block>& blocks, const Conclusions& conclusions);

}  // namespace paceline::report
