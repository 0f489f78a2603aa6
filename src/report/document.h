#pragma once

/// A report as data: what every renderer (terminal, Markdown, CSV, JSON, the page) is given.
///
/// Sections build Documents out of analysis results (sections/); renderers know nothing of scaling. The page
/// in web/ reads exactly the JSON of to_json(Document).

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace paceline::report {

/// How numbers of a column are shown. Values stay in the unit; only the text is rounded.
///
/// text          the cell's text, left aligned
/// integer       1,234,567
/// fixed1..3     so many decimals
/// percent1      the value is a ratio: 0.123 is shown as 12.3 %
/// seconds       value in s, three figures or more: 0.0123, 0.123, 1.23, 12.3, 123.5, 1,235 (text.h: number)
/// milliseconds  the value is in s and shown in ms, rounded likewise; the header says ms
/// bytes         value in bytes, shown in kB, MB or GB (1e3, 1e6, 1e9)
/// rate          rounded like seconds: images/s, GB/s
/// scientific    1.23e-04
enum class Format {
  text,
  integer,
  fixed1,
  fixed2,
  fixed3,
  percent1,
  seconds,
  milliseconds,
  bytes,
  rate,
  scientific
};

struct Column {
  std::string key{};    ///< stable, for CSV and JSON: "efficiency"
  std::string label{};  ///< for people: "efficiency"
  std::string unit{};   ///< "s", "GB/s", "images/s", "" (a ratio)
  Format format = Format::text;
};

/// One cell: a text, or a figure with its interval (low/high empty: a single sample, shown without one).
struct TableCell {
  std::string text{};  ///< shown when there is no value; "-" with a reason in `note` when missing
  std::optional<double> value{};
  std::optional<double> low{}, high{};
  std::string mark{};  ///< short flag shown behind the figure: "*" for oversubscribed, "est." ...
  std::string note{};  ///< longer explanation (tooltip, footnote)
};

struct Table {
  std::string id{};  ///< "scale-weak-time": file name of its CSV
  std::string title{};
  std::string definition{};  ///< the definitions and formulas that this table uses, with units
  std::vector<Column> columns{};
  std::vector<std::vector<TableCell>> rows{};
  std::vector<std::string> footnotes{};
};

struct Point {
  double x = 0, y = 0;
  std::optional<double> low{}, high{};
  std::string mark{};  ///< "" or why this point is special: "oversubscribed", "knee"
};
struct Series {
  std::string name{};
  std::vector<Point> points{};
  bool dashed = false;  ///< ideal lines, bounds
};
struct Axis {
  std::string label{};
  std::string unit{};
  bool log = false;
};
enum class PlotKind { line, stacked_bar };
struct Plot {
  std::string id{};
  PlotKind kind = PlotKind::line;
  std::string title{};
  std::string caption{};  ///< what to see in it, in one sentence
  Axis x{}, y{};
  std::vector<Series> series{};  ///< stacked_bar: one a phase; point i belongs to categories[i]; the page
                                 ///< draws shares of each bar, its size and the points stand in words
  std::vector<std::string> categories{};  ///< stacked_bar: labels along x
};

struct Paragraph {
  enum class Tone { plain, finding, warning };
  Tone tone = Tone::plain;
  std::string text{};
};

using Block = std::variant<Paragraph, Table, Plot>;

struct Section {
  std::string id{};     ///< "weak-scaling"
  std::string title{};  ///< "Weak scaling: how many workers?"
  std::vector<Block> blocks{};
};

struct Document {
  std::string title{};
  std::string subtitle{};               ///< model, data (synthetic is said here), machine, date
  std::vector<std::string> warnings{};  ///< said on top: synthetic data, debug build, oversubscription, noise
  std::vector<std::pair<std::string, std::string>>
      facts{};  ///< circumstances: CPU, cores, commit, command, ...
  std::vector<Section> sections{};
};

[[nodiscard]] std::string to_terminal(const Document& document, int width = 110, bool colour = false);
[[nodiscard]] std::string to_markdown(const Document& document);
/// One CSV text of one table: header `key [unit]`, then rows; figures with interval take three columns
/// (key, key_low, key_high).
[[nodiscard]] std::string to_csv(const Table& table);
/// The points of one plot, for drawing it again: header `series,x,y,low,high,mark` with the axes' labels and
/// units for x and y; a row a point. Of stacked bars x is the category.
[[nodiscard]] std::string to_csv(const Plot& plot);
/// {"schema": "paceline-report-1", "title", "subtitle", "warnings": [text], "facts": [{"name", "value"}],
///  "sections": [{"id", "title", "blocks": [block]}]}, where a block is one of
///   {"type": "paragraph", "tone", "text"}
///   {"type": "table", "id", "title", "definition", "columns": [{"key", "label", "unit", "format"}],
///    "rows": [[{"text", "value", "low", "high", "mark", "note"}]], "footnotes": [text]}
///   {"type": "plot", "id", "kind", "title", "caption", "x": {"label", "unit", "log"}, "y": likewise,
///    "series": [{"name", "points": [{"x", "y", "low", "high", "mark"}], "dashed"}], "categories": [text]}
/// Every field is always there. Enums go by their names ("stacked_bar", "percent1", "finding"); absent
/// optionals and numbers that are not finite are null; an empty text is "". tests/golden/sample-report.json
/// is an example.
[[nodiscard]] std::string to_json(const Document& document);
/// One self-contained page: the built web/ page with the JSON embedded.
[[nodiscard]] std::string to_html(const Document& document);

}  // namespace paceline::report
