#pragma once

/// Lines, heads and cells of a table in people's own words: "Epoch time (ms)", "94%", "9:41".

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "table/table.h"

namespace paceline::table {

struct Line {
  std::size_t number = 0;
  std::vector<std::string> cells;
};

/// Whether a line of heads in '|' stands above a line of dashes.
[[nodiscard]] bool is_markdown(std::string_view text);
/// The table of a Markdown text: its first lines that begin with '|', without the line of dashes.
[[nodiscard]] std::vector<Line> lines_of_markdown(std::string_view text);
/// `facts` takes the lines above the header that begin with '#'. Empty if the CSV is broken.
/// `separator` takes what stands between the cells.
[[nodiscard]] std::vector<Line> lines_of_csv(std::string_view text, std::vector<std::string>& facts,
                                             char& separator);
/// Drops columns at the right that have neither a head nor a value, and rows without a value.
void drop_empty(std::vector<Line>& lines);
/// Drops lines that are averages or sums of the others, and returns how many.
std::size_t drop_summaries(std::vector<Line>& lines);

struct Synonym {
  std::string_view column;
  std::string_view words;         ///< in small letters, separated by '|'
  std::string_view also = {};     ///< another column that they fill in
  std::string_view meaning = {};  ///< its value
};

/// The column that people call so, or nullptr.
[[nodiscard]] const Synonym* synonym_of(std::string_view words);

struct OwnHeading {
  std::string source;                 ///< as in the table
  const Synonym* synonym = nullptr;   ///< null: a column of ours, or a setting
  std::optional<std::string> ours{};  ///< the name of a column of ours
  std::string unit{};                 ///< as in the brackets: "GB/s"
  double factor = 0;                  ///< of the unit in brackets: seconds, or 0.01 for %; 0: none
  double clock = 60;                  ///< seconds of the first part of a clock of two parts, "0:13"
  bool is_unknown = false;            ///< its figures are in a unit that is not known
  bool has_decimal_comma = false;     ///< "52,5" is 52.5
  [[nodiscard]] std::string name() const;
};
[[nodiscard]] OwnHeading own_heading_of(const std::string& source);

/// Without the marks of Markdown, in small letters.
[[nodiscard]] std::string plain(std::string_view text);
/// Whether the column holds seconds.
[[nodiscard]] bool is_time(std::string_view column);
/// A cell in our form: without "x", "%", units and thousands; "" if it is empty or a dash.
[[nodiscard]] std::string cell_of(const OwnHeading& heading, std::string_view source);

}  // namespace paceline::table
