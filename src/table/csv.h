#pragma once

/// Comma-separated values with the place of each: RFC 4180, and a ";" or tab between cells where the header
/// has no comma.

#include <string>
#include <string_view>
#include <vector>

namespace paceline::table {

struct CsvCell {
  std::string text;
  std::size_t line = 0, column = 0;  ///< of its first letter, from 1
};
using CsvLine = std::vector<CsvCell>;

/// The lines that hold anything, the first of them at `first_line` of the file.
///
/// Errors   Error(data) with `where` and the place: a quote that is never closed, or anything behind one
[[nodiscard]] std::vector<CsvLine> read_csv(std::string_view text, const std::string& where,
                                            std::size_t first_line = 1);

/// `text` as a cell: in quotes where it has to be.
[[nodiscard]] std::string csv_cell(std::string_view text);

}  // namespace paceline::table
