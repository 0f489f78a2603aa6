#pragma once

/// Words and doubts that answers share.

#include <string>
#include <string_view>
#include <vector>

#include "analysis/operating_point.h"
#include "report/document.h"

namespace paceline::report {

/// "2 workers, 1 core each", "1 worker, 2 threads", "4 workers on 2 cores", "2 processes on 2 nodes".
[[nodiscard]] std::string way_of(const analysis::Cell& cell);

/// What a speedup is over: "one core", "one worker of 4 cores", else way_of().
[[nodiscard]] std::string baseline_name(const analysis::Cell& cell);

/// Whether it was computed by the processor, so that cores are what workers need.
[[nodiscard]] bool is_on_cpu(const analysis::Cell& cell);

/// The part of an axis of workers that has no core for each: from between `cores` and the next on, for as
/// many workers as cores are inside.
[[nodiscard]] Figure::Mark beyond_cores(int cores);

/// 0.938 -> "94 %", 0.047 -> "4.7 %", 0.004 -> "under 1 %".
[[nodiscard]] std::string about(double ratio);
/// "16, 32 and 64"
[[nodiscard]] std::string listed(const std::vector<std::string>& words);

/// What makes a figure of the cell doubtful: "emulated", "debug build", "one step", "one repeat", "others
/// unknown"; empty for nothing.
[[nodiscard]] std::string doubt_of(const analysis::Cell& cell);

/// How sure an answer is that rests on a choice: its standing, or careful where it would be decided or a tie
/// and the chosen cell is doubtful. Sets `certainty` and `chip`.
void judge(Answer& answer, const analysis::Choice& choice);
/// The same of an answer that rests on one cell.
void judge(Answer& answer, const analysis::Cell& cell);

/// value, interval and number of samples of `estimate`, and the records of `cell`.
void take_figures(Answer& answer, const analysis::Estimate& estimate, const analysis::Cell& cell);

/// An answer that nothing measured says.
[[nodiscard]] Answer not_measured(std::string id, std::string question, std::string sentence,
                                  std::string command);

/// `paceline <verb>` with the model, the data and the options that were typed for `record` and that do not
/// say what is measured, then `options`.
[[nodiscard]] std::string command_like(const measure::Record& record, std::string_view verb,
                                       std::string_view options);

}  // namespace paceline::report
