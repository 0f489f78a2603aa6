#pragma once

/// Answers of the summary that are long enough for files of their own.

#include <string>
#include <string_view>
#include <vector>

#include "report/conclusions.h"
#include "report/document.h"

namespace paceline::report {

/// "How many workers?": weak and strong scaling apart, what is not decided, and which rows say nothing and
/// why.
void answer_workers(std::vector<Block>& blocks, const Conclusions& conclusions);

}  // namespace paceline::report
