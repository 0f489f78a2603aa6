#pragma once

/// Makes texts that answers share, and sets how certain an answer is.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/operating_point.h"
#include "analysis/steps/remedies.h"
#include "analysis/steps/scaling.h"
#include "report/document.h"

namespace paceline::report {

/// "buckets of 2.1 MB", "2 loader threads a worker".
[[nodiscard]] std::string name_of(const analysis::Remedy& remedy, const analysis::Cell& cell);
/// "saves 4.1 %" (of the time of a step); "saves at most 4.1 %" if only a bound is known.
[[nodiscard]] std::string text_about_gain(const analysis::Remedy& remedy);
/// One command that measures the cell (configuration) of `loss` again with the remedy. If the remedy also
/// changes the run of one worker that its efficiency is compared with, the command measures both. Where a
/// host name is not known, the command has the placeholder HOST1, HOST2, ...
[[nodiscard]] std::string command_of(const analysis::Remedy& remedy, const analysis::EfficiencyLoss& loss);

/// "2 workers, 1 core each", "1 worker, 2 threads", "4 workers on 2 cores", "2 processes on 2 nodes".
[[nodiscard]] std::string way_of(const analysis::Cell& cell);

/// The name of a speedup's baseline: "one core", "one worker of 4 cores", else way_of().
[[nodiscard]] std::string baseline_name(const analysis::Cell& cell);

/// Whether the processor computed it, so that workers need cores.
[[nodiscard]] bool is_on_cpu(const analysis::Cell& cell);

/// Bytes of the memory that a batch fills: of the fullest GPU, whose peak is not measured, or of a process.
struct BatchMemory {
  std::int64_t plan = 0;  ///< 0: not planned
  std::optional<std::int64_t> peak;
};
[[nodiscard]] BatchMemory memory_of(const measure::Record& record);

/// Marks a point of efficiency or speedup whose interval lies above the ideal: its baseline was measured at a
/// slow moment, or has less cache for each worker.
void mark_above_ideal(Point& point, const analysis::ScalingRow& row);

/// The region of an axis of workers where there is no core for each: it begins between `cores` and the next
/// number.
[[nodiscard]] Figure::Mark beyond_cores(int cores);

/// 0.938 -> "94 %", 0.047 -> "4.7 %", 0.004 -> "under 1 %".
[[nodiscard]] std::string about(double ratio);

/// What makes a figure of the cell doubtful: "emulated", "debug build", "disturbed", "one step", "one
/// repeat", "maybe disturbed"; empty if nothing does.
[[nodiscard]] std::string doubt_of(const analysis::Cell& cell);

/// "other programs (python3, cc1plus) kept 0.9 to 1.1 of 2 cores busy": over the records of `cells`; empty if
/// none of them was disturbed. Without "of 2" if they kept more busy than the runs were bound to.
[[nodiscard]] std::string text_about_load(const std::vector<const analysis::Cell*>& cells);
/// Why nothing is recommended: how many configurations were measured, and what rules them out; or that no run
/// gave a figure, with the reason of the first.
///
/// Requires  the subject has no operating point
[[nodiscard]] std::string text_about_no_best(const analysis::OperatingPoint& point,
                                             const std::vector<const analysis::Cell*>& cells);

/// Sets `certainty` and `chip` of an answer that depends on a choice: the choice's standing, but not decided
/// if cells are unsettled, and "careful" instead of decided or tie if the chosen cell is doubtful.
void judge(Answer& answer, const analysis::Choice& choice);
/// The same for an answer that depends on one cell.
void judge(Answer& answer, const analysis::Cell& cell);

/// The picture of a choice among `cells`; `what` names one of them: "32", "2 workers".
[[nodiscard]] Answer::Bars bars_of(const std::vector<const analysis::Cell*>& cells,
                                   const analysis::Cell* best, const std::string& of,
                                   const std::function<std::string(const analysis::Cell&)>& what);

/// Copies value, interval and number of samples of `estimate`, and the ids of the records of `cell`.
void take_figures(Answer& answer, const analysis::Estimate& estimate, const analysis::Cell& cell);

/// The answer if nothing was measured.
[[nodiscard]] Answer not_measured(std::string id, std::string question, std::string sentence,
                                  std::string command);

/// Whether the record is of a quick study.
[[nodiscard]] bool is_quick(const measure::Record& record);

/// `paceline <verb>` with the model, the data and those options typed for `record` that do not choose what is
/// measured, then `options`.
[[nodiscard]] std::string command_like(const measure::Record& record, std::string_view verb,
                                       std::string_view options);

/// The value of an option of the record's command, as in `--out DIR` or `--out=DIR`, without quotes; the last
/// if it was typed twice, "" if it was not.
[[nodiscard]] std::string typed_value(const measure::Record& record, std::string_view option);
/// The command without an option and its value.
[[nodiscard]] std::string without_option(const std::string& command, std::string_view option);
/// The command without its `--out DIR`, for another run: the program then names a new directory.
[[nodiscard]] std::string into_a_new_directory(const std::string& command);

/// "3 epochs", "1 epoch", "0.45 epochs"
[[nodiscard]] std::string epochs_text(double epochs);

/// Whether it was tested or validated.
[[nodiscard]] bool is_evaluated(const measure::EpochRecord& epoch);
/// The accuracy of an epoch that says most: tested, else validated, else of the training images.
struct Reached {
  double accuracy = 0;
  const char* of = "";
};
[[nodiscard]] Reached reached_in(const measure::EpochRecord& epoch);

}  // namespace paceline::report
