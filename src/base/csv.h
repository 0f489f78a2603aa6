#pragma once

/// Reads comma-separated values and keeps the position of each: RFC 4180, or ";" or tab as separator if the
/// header has no comma.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::base {

struct CsvCell {
  std::string text;
  std::size_t line = 0, column = 0;  ///< of its first character, from 1
};
using CsvLine = std::vector<CsvCell>;

/// ',', ';' or a tab: what separates the cells of the first line.
[[nodiscard]] char csv_separator(std::string_view text);

/// All lines that are not empty. `first_line` is the line number of the beginning of `text`.
///
/// Errors   Error(data) with `where` and the position: a quote that is not closed, or text after a closed one
[[nodiscard]] std::vector<CsvLine> read_csv(std::string_view text, const std::string& where,
                                            std::size_t first_line = 1);

/// `text` as a cell, quoted if necessary.
[[nodiscard]] std::string csv_cell(std::string_view text);

}  // namespace paceline::base
