#pragma once

/// Building blocks of all sections' tables: cells from figures, marks, and the footnotes that explain the
/// marks.

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/compare/cell.h"
#include "analysis/steps/scaling.h"
#include "report/document.h"

namespace paceline::report {

[[nodiscard]] TableCell words(std::string text);
[[nodiscard]] TableCell value(double number);
template <std::integral Count>
[[nodiscard]] TableCell value(Count count) {
  return value(static_cast<double>(count));
}
/// With its interval if it has one.
[[nodiscard]] TableCell figure(const analysis::Estimate& estimate);
/// Of a figure with a value, a low and a high end, which stand for a cell's interval.
template <typename Bounded>
[[nodiscard]] TableCell bounded(const Bounded& figure) {
  return {.value = figure.value, .low = figure.low, .high = figure.high};
}
/// The same for a point of a plot, `factor` times as high.
template <typename Bounded>
[[nodiscard]] Point bounded_point(double x, const Bounded& figure, double factor = 1) {
  return {.x = x, .y = factor * figure.value, .low = factor * figure.low, .high = factor * figure.high};
}
/// Copies the interval of `estimate`, if it has one, to a cell, a point or an answer.
template <typename Shown>
void take_interval(Shown& shown, const analysis::Estimate& estimate) {
  if (!analysis::has_interval(estimate)) return;
  shown.low = estimate.low;
  shown.high = estimate.high;
}
/// A figure with its interval in a sentence: "1.97 [1.95, 1.98]".
[[nodiscard]] std::string with_interval(const analysis::Estimate& estimate, Format format);
/// "-" and the reason.
[[nodiscard]] TableCell missing(std::string reason);
/// The figure if there is one, else "-" and the reason.
[[nodiscard]] TableCell value(const std::optional<double>& number, const std::string& reason);
[[nodiscard]] TableCell figure(const std::optional<analysis::Estimate>& estimate, const std::string& reason);
/// With one standard error to either side, which its note says.
[[nodiscard]] TableCell with_error(double number, double standard_error);
[[nodiscard]] TableCell with_mark(TableCell cell, const std::string& mark);
/// Adds the same mark to every figure of the row, from column `first`.
void mark_row(std::vector<TableCell>& row, std::size_t first, const std::string& mark);

/// Takes out the column `key` with its cells.
///
/// Requires  the table has it
void remove_column(Table& table, std::string_view key);

/// Columns of times in ms, of bytes, and of amounts in a second.
[[nodiscard]] Column in_ms(std::string key, std::string label);
[[nodiscard]] Column in_bytes(std::string key, std::string label, std::string unit = "");
[[nodiscard]] Column in_rate(std::string key, std::string label, std::string unit);

/// Adds a block if there is one.
template <typename Kind>
void add_block(std::vector<Block>& blocks, std::optional<Kind> block) {
  if (block) blocks.emplace_back(std::move(*block));
}

[[nodiscard]] Paragraph plain(std::string text);
[[nodiscard]] Paragraph finding(std::string text);
[[nodiscard]] Paragraph warning(std::string text);

/// Marks for special properties of a cell's figures: "*" more worker threads than cores, "†" a worker has
/// fewer threads than the baseline's, "debug" a build without optimisation, "emulated" an emulated link,
/// straggler or storage, "n=3" three timed steps, too few for an interval. Joined by blanks; empty if none
/// applies.
[[nodiscard]] std::string marks_of(const analysis::Cell& cell);
[[nodiscard]] std::string marks_of(const analysis::ScalingRow& row);
/// A cell in words: "sweep, 1 worker, batch 32", "scale strong, 2 workers, global batch 128".
[[nodiscard]] std::string words_for(const analysis::Cell& cell);
/// "disturbed", "maybe disturbed", or "".
[[nodiscard]] std::string mark_of(measure::Disturbance disturbance);
/// The same in a table's cell: "disturbed", "~", or "".
[[nodiscard]] std::string short_mark_of(measure::Disturbance disturbance);
/// "beside other programs", "perhaps beside other programs", or "".
[[nodiscard]] std::string beside_others(measure::Disturbance disturbance);
/// That of a comparison of the cells' times: of the most disturbed that was measured.
[[nodiscard]] measure::Disturbance worst_of(const std::vector<const analysis::Cell*>& cells);
/// The mark of a plot's point: "emulated", "oversubscribed", "shared cores", "debug build", or "".
[[nodiscard]] std::string point_mark(const analysis::Cell& cell);

/// A point of a plot, with the interval of `y` if it has one.
[[nodiscard]] Point point_of(double x, const analysis::Estimate& y, std::string mark);
/// The same for a cell: with its mark, or that of its disturbance, and its record.
[[nodiscard]] Point point_of(double x, const analysis::Estimate& y, const analysis::Cell& cell);

/// A figure of held-out images over the epochs of a training.
struct HeldOut {
  Series like;       ///< its name, and how it is drawn
  const char* part;  ///< of which images: measure::kTestImages
  std::optional<double> measure::EpochRecord::*figure;
  double factor;  ///< on the figure
  std::function<double(const measure::EpochRecord&)> x;
};
/// Adds its curve, cut where a resume took other images: accuracies on other images make no line. An earlier
/// piece is called "test until update 16".
void add_held_out(std::vector<Series>& series, const measure::Record& record, const HeldOut& shown);
/// Whether the figures of two epochs, of so many updates, are of the same images of `part`.
[[nodiscard]] bool are_of_same_images(const measure::Record& record, const std::string& part,
                                      std::int64_t earlier, std::int64_t later);

/// The end of a sentence on the cell's times: " EMULATED link of ...: no times of such hardware."; empty if
/// nothing was emulated.
[[nodiscard]] std::string text_about_emulation(const analysis::Cell& cell);

/// "2 workers (2 cores)": with the cores that the cell could use, since a worker may have one thread or many.
/// "2 workers" if the CUDA engine computed.
[[nodiscard]] std::string workers_on_cores(const analysis::Cell& cell);

/// ", " followed by the text; empty for an empty text.
[[nodiscard]] std::string behind(const std::string& text);

/// Inserts columns at index `at` for model, data set, nodes, processes, threads, communicator, algorithm,
/// device and precision, if the rows' cells differ in them; nodes, processes and threads also if any row has
/// several processes. Returns the entries of the set-up that now have a column. `cells`: one per row. Call it
/// when the rows are complete, since columns from `at` on move.
std::set<std::string> insert_setup_columns(Table& table, std::size_t at,
                                           const std::vector<const analysis::Cell*>& cells);

/// The same; and if the cells differ in more than these columns and their sizes, adds a last column "differs
/// in". Readers compare rows of a table even if no ratio is given.
void add_setup_columns(Table& table, std::size_t at, const std::vector<const analysis::Cell*>& cells);

/// A list of footnotes in the order added, without duplicates.
class Footnotes {
 public:
  void add(const std::string& note);
  /// Adds explanations of the marks of `row`, its refusals and remarks, and why it was not measured.
  void explain(const analysis::ScalingRow& row);
  void explain(const analysis::Cell& cell);
  void explain_marks(const analysis::Cell& cell);
  /// Repeats that other programs disturbed are one note, which names their cells.
  [[nodiscard]] std::vector<std::string> take();

 private:
  std::vector<std::string> notes_, disturbed_;
};

/// "one repeat", "two repeats": too few for a claim, since if runs differ more than steps, two of them lie on
/// the same side of the median in half of all cases. Of several cells those of the one with the fewest: "one
/// repeat at the least" if others have more. Empty for three or more.
[[nodiscard]] std::string fewest_repeats(const std::vector<const analysis::Cell*>& cells);
/// What makes a comparison of the cells' times doubtful: "one repeat, beside other programs", "perhaps beside
/// other programs"; empty if nothing does.
[[nodiscard]] std::string doubts_about(const std::vector<const analysis::Cell*>& cells);
/// " (one repeat)"; empty for an empty text.
[[nodiscard]] std::string in_brackets(const std::string& text);

/// "One repeat: ..." with the labels of the measured cells that have a single repeat; separately those whose
/// repeat is a single step. Empty if there are none.
[[nodiscard]] std::vector<std::string> text_about_single_repeats(
    const std::vector<const analysis::Cell*>& cells);

}  // namespace paceline::report
