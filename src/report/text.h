#pragma once

/// Figures as text: the one place where numbers of a report are rounded, for terminal and Markdown alike.

#include <string>
#include <string_view>

#include "report/document.h"

namespace paceline::report {

/// A cell split where a renderer may break it: "12.3" and "[12.1, 12.6]", then the mark.
struct CellText {
  std::string figure;    ///< "87.1 %", "44.7 MB", or the cell's text
  std::string interval;  ///< "[85.8, 88.4]"; empty for a single sample
  std::string mark;
};
[[nodiscard]] CellText cell_text(const TableCell& cell, Format format);

/// The whole cell on one line: "12.3 [12.1, 12.6] *".
[[nodiscard]] std::string one_line(const CellText& text);

/// "step [ms]": the label with the unit that the figures are shown in.
[[nodiscard]] std::string heading(const Column& column);

/// `value` with the decimals that its size deserves: 1,235 · 123.5 · 12.3 · 1.23 · 0.123 · 0.0123.
[[nodiscard]] std::string number(double value);
/// As `number`, in two figures, for what is only about so: 1,900 · 190 · 25 · 4.6 · 0.56.
[[nodiscard]] std::string rough(double value);
/// As `number`, without decimals that say nothing, for what may be whole: 1,000 · 30 · 12.5 · 0.25.
[[nodiscard]] std::string amount(double value);
/// 1234567 -> "1,234,567".
[[nodiscard]] std::string integer(double value);
/// 0.871 -> "87.1 %".
[[nodiscard]] std::string percent(double ratio);
/// 44695848 -> "44.7 MB"; 1e6 and 1e9, as everywhere here.
[[nodiscard]] std::string bytes(double value);
/// Seconds in the unit that reads best: "369 ms", "12.3 s", "2 h 05 min".
[[nodiscard]] std::string duration(double seconds);

/// Columns that `text` takes on a terminal: code points of UTF-8.
[[nodiscard]] std::size_t display_width(std::string_view text);

}  // namespace paceline::report
