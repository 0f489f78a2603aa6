#pragma once

/// What all sections build their tables of: cells from figures, marks, and the footnotes that explain the
/// marks.

#include <set>
#include <string>
#include <vector>

#include "analysis/cell.h"
#include "analysis/scaling.h"
#include "analysis/sweep.h"
#include "report/document.h"

namespace paceline::report {

[[nodiscard]] TableCell words(std::string text);
[[nodiscard]] TableCell value(double number);
/// With its interval where it has one.
[[nodiscard]] TableCell figure(const analysis::Estimate& estimate);
/// The same in a sentence: "1.97 [1.95, 1.98]".
[[nodiscard]] std::string with_interval(const analysis::Estimate& estimate, Format format);
/// "-" and why.
[[nodiscard]] TableCell missing(std::string reason);
[[nodiscard]] TableCell with_mark(TableCell cell, const std::string& mark);
/// The same mark on every figure of the row.
void mark_row(std::vector<TableCell>& row, std::size_t first, const std::string& mark);

[[nodiscard]] Paragraph plain(std::string text);
[[nodiscard]] Paragraph finding(std::string text);
[[nodiscard]] Paragraph warning(std::string text);

/// "2 workers", "1 worker".
[[nodiscard]] std::string count(long number, const std::string& noun);

/// Marks that say what is special about a cell's figures: "*" more worker threads than cores, "†" a worker
/// has fewer threads than the baseline's, "debug" a build that is not optimised, "emulated" a link, straggler
/// or storage that was only emulated, "n=1" a single timed step. Joined by a blank; empty for none.
[[nodiscard]] std::string marks_of(const analysis::Cell& cell);
[[nodiscard]] std::string marks_of(const analysis::ScalingRow& row);
/// The word of a plot's point: "emulated", "oversubscribed", "shared cores", "debug build", or "".
[[nodiscard]] std::string point_mark(const analysis::Cell& cell);

/// A point of a plot with the interval of `y` where it has one.
[[nodiscard]] Point point_of(double x, const analysis::Estimate& y, std::string mark);
/// The same of a cell: with its mark, or "disturbed", and its records.
[[nodiscard]] Point point_of(double x, const analysis::Estimate& y, const analysis::Cell& cell);

/// For the end of a sentence on the cell's times: " EMULATED link of ...: no times of such hardware."; empty
/// where nothing was emulated.
[[nodiscard]] std::string said_of_emulation(const analysis::Cell& cell);

/// "2 workers (2 cores)": the cores that the cell could use, since one worker may have one thread or many.
[[nodiscard]] std::string workers_on_cores(const analysis::Cell& cell);

/// What tells a group from the others of its batch: "resnet8-cifar, threads of one process, version 0.2.0";
/// empty where nothing does.
[[nodiscard]] std::string said_of_group(const analysis::ScalingGroup& group);
/// ", " and the text; empty for an empty text.
[[nodiscard]] std::string behind(const std::string& text);

/// Inserts at index `at` a column for model, data set, nodes, processes, threads, communicator, algorithm,
/// device and precision where the cells of the rows differ in them; nodes, processes and threads also where
/// any row has several processes. Returns the entries of the set-up that have one. `cells`: one a row. To be
/// called when the rows are complete: columns from `at` on move.
std::set<std::string> insert_setup_columns(Table& table, std::size_t at,
                                           const std::vector<const analysis::Cell*>& cells);

/// Rows of a table are compared by eye whatever its ratios refuse: the same, and where the cells differ in
/// more than those columns and their sizes say, a last column that says in what, "differs in".
void add_setup_columns(Table& table, std::size_t at, const std::vector<const analysis::Cell*>& cells);

/// Each footnote once, in the order added. Duplicates are dropped.
class Footnotes {
 public:
  void add(const std::string& note);
  /// The explanations of the marks that `row` bears, its refusals and remarks, and why it was not measured.
  void explain(const analysis::ScalingRow& row);
  void explain(const analysis::Cell& cell);
  void explain_marks(const analysis::Cell& cell);
  [[nodiscard]] std::vector<std::string> take() { return std::move(notes_); }

 private:
  std::vector<std::string> notes_;
};

/// "8 and 512 overlap; measure longer", to stand behind "not decided: "; empty where the knee is decided.
[[nodiscard]] std::string knee_not_decided(const analysis::Sweep& sweep);

/// few_repeats of the batches that the knee was chosen from.
[[nodiscard]] std::string said_of_repeats(const analysis::Sweep& sweep);

/// "one repeat", "two repeats": too few for a claim, since where runs differ more than steps do two of them
/// lie on the same side of the median in every second case. Empty of three or more.
[[nodiscard]] std::string few_repeats(const analysis::Cell& cell);
/// The same of what several cells are compared for: of the one with the fewest. "one repeat at the least"
/// where others have more.
[[nodiscard]] std::string fewest_repeats(const std::vector<const analysis::Cell*>& cells);
/// "baseline measured with version 0.1.0, this with version 0.2.0", where a ratio is of two of them (or of
/// hosts, libraries ...); else empty.
[[nodiscard]] std::string said_of_circumstances(const analysis::Cell& baseline, const analysis::Cell& cell);
/// " (one repeat)"; empty for an empty text.
[[nodiscard]] std::string in_brackets(const std::string& text);

/// "One repeat: ..." with the labels of the measured cells that have a single repeat, and apart from them
/// those of which that repeat is a single step; none where there are none.
[[nodiscard]] std::vector<std::string> said_of_single_repeats(
    const std::vector<const analysis::Cell*>& cells);

}  // namespace paceline::report
