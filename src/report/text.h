#pragma once

/// Writes figures as text. All rounding of a report's numbers happens here, for terminal and Markdown.

#include <concepts>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/word_of.h"
#include "report/document.h"

namespace paceline::report {

using base::counted, base::display_width, base::word_of, base::words_of, base::wrapped;

// The names of document.h's enums in JSON and the page.

[[nodiscard]] std::string_view name(Format format);
[[nodiscard]] std::string_view name(PlotKind kind);
[[nodiscard]] std::string_view name(Paragraph::Tone tone);
[[nodiscard]] std::string_view name(Certainty certainty);
[[nodiscard]] std::string_view name(Comparison::Word word);
[[nodiscard]] std::string_view name(Expectation::Verdict verdict);

/// Words and signs for users: "≈ tie", "! careful", "improved", "no change".
[[nodiscard]] std::string_view sign_of(Certainty certainty);
[[nodiscard]] std::string text_of(Certainty certainty);
[[nodiscard]] std::string text_of(Comparison::Word word);
/// "✓ pass", "✗ fail", "? not decided", "– not measured".
[[nodiscard]] std::string text_of(Expectation::Verdict verdict);

/// "32 images a worker": the answer's figure with its unit.
[[nodiscard]] std::string figure_with_unit(const Answer& answer);
/// Why it is as certain as it is: "3 tie"; without a chip the word of its certainty.
[[nodiscard]] std::string chip_or_word(const Answer& answer);

/// A cell in parts between which a renderer may break it: "12.3" and "[12.1, 12.6]", then the mark.
struct CellText {
  std::string figure;    ///< "87.1 %", "44.7 MB", or the cell's text
  std::string interval;  ///< "[85.8, 88.4]"; empty for a single sample
  std::string mark;
};
[[nodiscard]] CellText cell_text(const TableCell& cell, Format format);

/// The whole cell on one line: "12.3 [12.1, 12.6] *".
[[nodiscard]] std::string one_line(const CellText& text);

/// "step [ms]": the label with the unit of the figures.
[[nodiscard]] std::string heading(const Column& column);

/// `value` with decimals by its size: 1,235 · 123.5 · 12.3 · 1.23 · 0.123 · 0.0123.
[[nodiscard]] std::string number(double value);
/// As `number` with two significant figures, for approximate values: 1,900 · 190 · 25 · 4.6 · 0.56.
[[nodiscard]] std::string rough(double value);
/// As `number` without trailing zeros, for values that may be integers: 1,000 · 30 · 12.5 · 0.25.
[[nodiscard]] std::string amount(double value);
/// 1234567 -> "1,234,567".
[[nodiscard]] std::string integer(double value);
template <std::integral Count>
[[nodiscard]] std::string integer(Count count) {
  return integer(static_cast<double>(count));
}
/// 0.871 -> "87.1 %".
[[nodiscard]] std::string percent(double ratio);
/// 44695848 -> "44.7 MB"; MB is 1e6, GB 1e9.
[[nodiscard]] std::string bytes(double value);
/// Seconds in the unit that reads best: "369 ms", "12.3 s", "2 h 05 min".
[[nodiscard]] std::string duration(double seconds);

/// Names with their values, the largest first.
[[nodiscard]] std::vector<std::pair<std::string, double>> largest_first(
    const std::map<std::string, double>& values);

/// "16, 32 and 64"
[[nodiscard]] std::string listed(const std::vector<std::string>& words);

/// `text` escaped for HTML and XML, inside elements and quoted attributes.
[[nodiscard]] std::string markup_text(std::string_view text);

// Texts from records stay plain text in Markdown: no HTML, links, images or line breaks.

[[nodiscard]] std::string without_markup(std::string_view text);
/// The same for a cell of a table, which a pipe would end.
[[nodiscard]] std::string markdown_cell(std::string_view text);

/// Names of files: blocks may share an id (each training has its table), files may not.
class OwnNames {
 public:
  OwnNames() = default;
  explicit OwnNames(std::string taken) : taken_{std::move(taken)} {}
  /// `id` with anything but letters, digits, "-", "_" and "." as "-"; the second of a name gets "-2".
  [[nodiscard]] std::string next(std::string_view id);

 private:
  std::set<std::string> taken_;
};

}  // namespace paceline::report
