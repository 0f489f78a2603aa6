#pragma once

/// A report as data, the input of every renderer (terminal, Markdown, CSV, JSON, the page).
///
/// answers/ and sections/ build Documents from analysis results. Renderers know nothing of scaling and
/// contain no sentences about results. The page in web/ reads the JSON of to_json(Document).

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analysis/predict/closed_form.h"

namespace paceline::report {

/// How numbers of a column are shown. Values keep their unit; only the text is rounded.
///
///   text          the cell's text, left aligned
///   integer       1,234,567
///   fixed1..3     with this many decimals
///   percent1      the value is a ratio: 0.123 is shown as 12.3 %
///   seconds       value in s, at least three significant figures: 0.0123, 0.123, 1.23, 12.3, 123.5, 1,235
///                 (text.h)
///   milliseconds  value in s, shown in ms and rounded likewise; the header says ms
///   bytes         value in bytes, shown in kB, MB or GB (1e3, 1e6, 1e9)
///   rate          rounded like seconds: images/s, GB/s
///   scientific    1.23e-04
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
  std::string
      group{};  ///< columns that the page shows and hides together: "time", "network"; "": always there
};

/// One cell: a text, or a figure with its interval (low/high empty: a single sample, shown without one).
struct TableCell {
  std::string text{};  ///< shown when there is no value; "-" with a reason in `note` when missing
  std::optional<double> value{};
  std::optional<double> low{}, high{};
  std::string mark{};  ///< short mark behind the figure: "*" for oversubscribed, "est." ...
  std::string note{};  ///< longer explanation (tooltip, footnote)
};

struct Table {
  std::string id{};  ///< "scale-weak-time": file name of its CSV
  std::string title{};
  std::string definition{};  ///< definitions and formulas of this table, with units
  std::vector<Column> columns{};
  std::vector<std::vector<TableCell>> rows{};
  std::vector<std::string> footnotes{};
};

struct Point {
  double x = 0, y = 0;
  std::optional<double> low{}, high{};
  std::string
      mark{};  ///< why this point is special: "oversubscribed", "disturbed", "best", "best, disturbed"; or ""
  std::string record{};  ///< id of the (first) record behind it; "" for lines that were not measured
  int n = 0;             ///< samples behind y; 0: unknown
};
struct Series {
  std::string name{};
  std::vector<Point> points{};
  bool dashed = false;  ///< ideal lines, bounds
  bool hidden = false;  ///< drawn only after a click on its name in the legend
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
  std::string caption{};  ///< what it shows, in one sentence
  Axis x{}, y{};
  std::vector<Series> series{};  ///< stacked_bar: one per phase; point i belongs to categories[i]; the page
                                 ///< draws shares of each bar, its size and the points are in words
  std::vector<std::string> categories{};  ///< stacked_bar: labels along x
};

struct Paragraph {
  enum class Tone { plain, finding, warning };
  Tone tone = Tone::plain;
  std::string text{};
};

/// How certain an answer is.
///
///   decided        no other candidate's interval reaches it
///   tie            others' intervals overlap with it, and all of them are within 5 % of it
///   not_decided    they overlap, but reach further
///   careful        something named by the chip makes the figure doubtful: one seed, unknown disturbance
///   not_measured   no record gives an answer
enum class Certainty { decided, tie, not_decided, careful, not_measured };

/// One question with its answer: a tile of the page, a line of the terminal. The one with the id "best" says
/// what to do and has no question.
struct Answer {
  std::string id{};        ///< "best", "batch", "workers", "limit", "network", "accuracy"
  std::string question{};  ///< "Which batch?"
  Certainty certainty = Certainty::not_measured;
  std::string chip{};      ///< the reason for the certainty in a few words: "decided", "3 tie", "one seed"
  std::string figure{};    ///< shown large: "32"; for "best" a whole sentence
  std::string unit{};      ///< behind it: "images a worker"
  std::string sentence{};  ///< at most two, each of at most 20 words and 3 numbers
  std::optional<double> value{}, low{}, high{};  ///< of the number that decides, unrounded: images/s, a ratio
  int n = 0;                                     ///< samples behind the value; 0: unknown
  std::string evidence{};                        ///< id of the figure or table that shows it
  std::vector<std::string> records{};            ///< ids of the records behind it
  std::string command{};  ///< of "best": trains with this; if not measured: measures it
  /// A small picture of the choice: images/s of each candidate, the chosen one dark.
  struct Bars {
    std::string title{};           ///< "images/s with 32, 64 and 128 images a worker"
    std::vector<double> values{};  ///< images/s; with fewer than two there is no picture
    int chosen = 0;
  } bars{};
};

/// What to do next, most useful first.
struct Next {
  struct Step {
    std::string title{}, why{}, command{};
    std::optional<double> seconds{};  ///< expected duration of the command on this machine
  };
  std::vector<Step> steps{};
  std::vector<std::string> not_answered{};  ///< sentences on what these records cannot answer
};

/// A drawing whose title is its finding.
struct Figure {
  /// A level or a region. `axis` 'y': a band from low to high, or with low alone a line. 'x': hatched from
  /// low on.
  struct Mark {
    char axis = 'y';
    double low = 0;
    std::optional<double> high{};
    std::string label{};
  };
  struct View {
    std::string name{};  ///< on the button that selects it: "images/s"
    Axis x{}, y{};
    std::vector<Series> series{};
    std::vector<Mark> marks{};
    std::string finding{}, note{};  ///< what is seen in this view, if that is not the figure's
  };
  std::string id{};
  std::string finding{};  ///< "Two workers with small batches are fastest"; of the first view
  std::string note{};     ///< how to read it, in one sentence
  std::vector<View> views{};
  /// The page has fields below the drawing that compute it again; other formats leave it out.
  std::optional<analysis::ClosedForm> recomputed{};
};

/// How one time becomes another: `from`, a sequence of changes, `to`. In seconds; they add up.
struct Waterfall {
  struct Change {
    std::string name{};
    double seconds = 0;
    std::string hint{};  ///< what could be changed, and what it saves at most; "" if nothing is known
    std::optional<double> low{}, high{};  ///< of the seconds, 95 %
    bool is_noise = false;                ///< its interval contains 0: drawn grey
  };
  /// The same changes for another number of workers, each as a fraction of its step; the remainder to 1 is
  /// the efficiency.
  struct Bar {
    std::string name{};  ///< "2 workers"
    double step_s = 0;
    std::vector<double> parts{};  ///< [changes]
  };
  std::string id{}, finding{}, note{};
  std::string from_name{}, to_name{};
  double from = 0, to = 0;
  std::vector<Change> changes{};
  std::vector<Bar> bars{};  ///< by workers; empty if there is only one
};

/// What ranks did at the same time: spans in lanes, in seconds since the first step shown.
struct Timeline {
  struct Span {
    int lane = 0, phase = 0;  ///< indices of `lanes`, `phases`
    double begin = 0, end = 0;
  };
  std::string id{}, finding{}, note{};
  std::vector<std::string> lanes{};   ///< "rank 0", "rank 0, all-reduce"
  std::vector<std::string> phases{};  ///< "forward", "wait for a rank"
  std::vector<Span> spans{};
};

/// Pairs of cells that were measured twice: B over A.
struct Comparison {
  enum class Word { improved, regressed, no_change, within_noise, not_decided, not_compared };
  struct Row {
    std::string name{};  ///< of the pair
    Word word = Word::not_compared;
    std::optional<double> ratio{}, low{}, high{};  ///< B / A of the figure; above 1 is better
    std::string before{}, after{};                 ///< the figures, with their unit
    std::string why{};                             ///< for not_compared: the reason
    std::string mark{};                            ///< "maybe disturbed": drawn hollow
  };
  std::string id{}, finding{}, note{};
  std::string name_of_ratio{};  ///< "images/s, B over A"
  std::vector<Row> rows{};
};

/// The steps of all measured windows, one window after another, and what other programs did meanwhile.
struct Strip {
  struct Window {
    std::string name{};                    ///< of the configuration: "2 workers, 1 core each, 64 images each"
    std::string record{};                  ///< id
    std::string mark{};                    ///< "disturbed", "maybe disturbed", or ""
    double begin_s = 0, seconds = 0;       ///< measured time; between two windows none passes
    double typical_s = 0;                  ///< the median step of the configuration
    std::optional<double> others_cores{};  ///< cores that other programs kept busy, on average
    /// Of groups of consecutive steps: the fastest, median and slowest step over `typical_s`.
    std::vector<double> low{}, middle{}, high{};
  };
  std::string id{}, finding{}, note{};
  std::vector<Window> windows{};  ///< in the order in which they were measured
};

/// A value for each pair of a row and a column, shown by its shade: confused classes, accuracy by batch and
/// learning rate.
struct Heatmap {
  struct Cell {
    std::optional<double> value{};  ///< none: the cell is empty, and `note` says why
    std::optional<double> low{}, high{};
    std::string mark{};  ///< "best" gets a ring; any other is written behind the value
    std::string note{};  ///< shown when it is pointed at
  };
  std::string id{}, finding{}, note{};
  std::string row_label{}, column_label{};     ///< "shows", "taken for"
  Column value{};                              ///< what a cell holds: label, unit, format
  std::vector<std::string> rows{}, columns{};  ///< names
  std::vector<Cell> cells{};                   ///< [rows][columns]
  /// Counts of classes taken for classes: a cell of equal names is right and has another colour, and the
  /// shade is the part of its row. Otherwise the shade goes from the least value to the largest.
  bool is_confusion = false;
};

/// Small pictures, each with the words of a row of `table` below it.
struct Gallery {
  Table table{};
  std::vector<std::string>
      pictures{};  ///< [rows] JPEG files; "": none, and the page lists the row in a table
};

using Block = std::variant<Paragraph, Table, Plot, Answer, Next, Figure, Waterfall, Timeline, Comparison,
                           Strip, Heatmap, Gallery>;

/// A bound that the user gave for a figure, and whether it holds.
///
///   pass, fail     for every value that the figure may have
///   not_decided    for some of them: the interval holds the bound, or other programs may have changed it
///   not_measured   no record has the figure
struct Expectation {
  enum class Verdict { pass, fail, not_decided, not_measured };
  std::string text{};  ///< "efficiency >= 0.9"
  Verdict verdict = Verdict::not_measured;
  std::string figure{};  ///< "0.871 [0.858, 0.884]", with its unit; "" if not measured
  std::string mark{};    ///< what makes it doubtful: "maybe disturbed", "one repeat"
  std::string why{};     ///< a sentence, unless it passed without a doubt
  std::optional<double> value{}, low{}, high{};  ///< unrounded; without an interval low and high are empty
};

struct Section {
  std::string id{};     ///< "weak-scaling"
  std::string title{};  ///< "Weak scaling: how many workers?"
  std::vector<Block> blocks{};
  bool is_folded = false;  ///< a detail: the page shows only its title until it is opened
};

struct Document {
  std::string title{};
  std::string subtitle{};                    ///< model, data (including "synthetic"), machine, date
  std::vector<std::string> circumstances{};  ///< a few words each, for the line under the title: "CPU, bf16"
  std::string trust{};  ///< how far to trust it: "quick study: typical interval ±5 %"; "" if as usual
  std::vector<std::string> warnings{};  ///< at the top: synthetic data, debug build, oversubscription, noise
  std::vector<Expectation> expectations{};  ///< of --expect, in its order
  std::vector<std::pair<std::string, std::string>>
      facts{};  ///< circumstances: CPU, cores, commit, command, ...
  std::vector<Section> sections{};
};

[[nodiscard]] std::string to_terminal(const Document& document, int width = 110, bool colour = false);
/// The beginning of to_terminal() in at most `most_lines` lines: the answers, or where there are none the
/// sentences and short tables of the first sections, of longer tables the first rows.
[[nodiscard]] std::string first_screen(const Document& document, int width, bool colour,
                                       std::size_t most_lines);
[[nodiscard]] std::string to_markdown(const Document& document);
/// One table as CSV: header `key [unit]`, then rows; a figure with an interval takes three columns (key,
/// key_low, key_high).
[[nodiscard]] std::string to_csv(const Table& table);
/// The points of one plot, for drawing it again: header `series,x,y,low,high,mark` with the axes' labels and
/// units for x and y; a row per point. For stacked bars x is the category.
[[nodiscard]] std::string to_csv(const Plot& plot);
/// A file for each table, plot, view of a figure, waterfall, timeline, comparison, strip, heat map and
/// gallery, named by its id.
struct CsvFile {
  std::string name{}, text{};
  bool is_table = false;
};
[[nodiscard]] std::vector<CsvFile> csv_files(const Document& document);
/// A file, by its name without the ending.
struct NamedText {
  std::string name{}, text{};
};
/// A LaTeX file for each table (answers, waterfalls and circumstances too), named by its id, which needs the
/// package booktabs; and "tables", a document with all of them.
[[nodiscard]] std::vector<NamedText> latex_files(const Document& document);
/// An SVG file for each drawing of the page, each view of a figure one, named by its id.
struct Figures {
  std::vector<NamedText> files{};
  std::vector<std::string> without{};  ///< a sentence for each question that has none
};
[[nodiscard]] Figures svg_figures(const Document& document);
/// A few lines of Markdown for a CI's page: what to do, expectations and answers as tables, how many
/// warnings. Of a comparison its finding and the pairs that changed. At most 25 lines.
[[nodiscard]] std::string to_summary(const Document& document);
/// The document as JSON. Fields marked ? are left out if they have only null, "" or 0, or nothing; other
/// fields are always present.
///
///   {"schema": "paceline-report-2", "title", "subtitle", "circumstances": [text], "trust",
///    "warnings": [text], "facts": [{"name", "value"}],
///    "expectations"?: [{"text", "verdict", "figure", "mark", "why", "value", "low", "high"}],
///    "sections": [{"id", "title", "folded", "blocks": [block]}]}
///
/// A block is one of
///   {"type": "paragraph", "tone", "text"}
///   {"type": "table", "id", "title", "definition", "footnotes": [text], "rows": number,
///    "columns": [{"key", "label", "unit", "format", "group", "text"?: [..], "value"?: [..], "low"?: [..],
///                 "high"?: [..], "mark"?: [..], "note"?: [..]}]}
///   {"type": "plot", "id", "kind", "title", "caption", "x": axis, "y": axis, "series": [series],
///    "categories": [text]}
///   {"type": "answer", "id", "question", "certainty", "chip", "figure", "unit", "sentence", "value", "low",
///    "high", "n", "evidence", "records": [id], "command", "bars"?: {"title", "values": [number], "chosen"}}
///   {"type": "next", "steps": [{"title", "why", "command", "seconds"}], "not_answered": [text]}
///   {"type": "figure", "id", "finding", "note",
///    "views": [{"name", "x": axis, "y": axis, "series": [series],
///               "marks": [{"axis": "x" or "y", "low", "high", "label"}], "finding"?, "note"?}]}
///   {"type": "waterfall", "id", "finding", "note", "from": {"name", "seconds"}, "to": {"name", "seconds"},
///    "changes": [{"name", "seconds", "hint", "low", "high", "noise"}],
///    "bars": [{"name", "seconds", "parts": [number]}]}
///   {"type": "timeline", "id", "finding", "note", "lanes": [text], "phases": [text],
///    "spans": {"lane": [..], "phase": [..], "begin": [..], "end": [..]}}
///   {"type": "comparison", "id", "finding", "note", "name_of_ratio",
///    "rows": [{"name", "word", "ratio", "low", "high", "before", "after", "why", "mark"?}]}
///   {"type": "strip", "id", "finding", "note",
///    "windows": [{"name", "record", "mark", "begin", "seconds", "typical", "others", "low": [number],
///                 "middle": [number], "high": [number]}]}
///   {"type": "heatmap", "id", "finding", "note", "row_label", "column_label", "value": column,
///    "rows": [text], "columns": [text], "confusion": bool, "cells": {"value": [..], "low"?, "high"?,
///    "mark"?, "note"?}}: [rows][columns], row by row
///   {"type": "gallery", "table": a block of type table, "pictures": [JPEG in base64 or ""]}
/// with
///   axis    {"label", "unit", "log"}
///   column  {"label", "unit", "format"}
///   series  {"name", "dashed", "hidden", "x": [..], "y": [..], "low"?, "high"?, "mark"?, "record"?, "n"?}
///
/// Columns, points and spans are lists, one per field. Enums are written by name ("stacked_bar",
/// "not_decided", "within_noise"); absent optionals and numbers that are not finite are null; an empty text
/// is "". Numbers have seven digits. tests/golden/sample-report.json is an example, sample-report-1.json one
/// of the previous schema, which the page still opens.
[[nodiscard]] std::string to_json(const Document& document);
/// One self-contained page: the built web/ page with the JSON embedded.
[[nodiscard]] std::string to_html(const Document& document);

// Converts a report's drawings to tables, for renderers that cannot draw and for CSV.

/// A table as it is, a gallery's, or those that say the same as a drawing; none for other blocks.
[[nodiscard]] std::vector<Table> tables_of(const Block& block);
/// The bars of a waterfall, a row each: the parts of a step and the remainder to 1.
[[nodiscard]] Table bars_as_table(const Waterfall& waterfall);
/// A row per window: its fastest, median and slowest step, its steps as a line of letters, others' cores.
[[nodiscard]] Table as_table(const Strip& strip);
[[nodiscard]] Table as_table(const std::vector<Expectation>& expectations);
/// The points of one view; its id is the figure's followed by the view's name.
[[nodiscard]] Plot as_plot(const Figure& figure, const Figure::View& view);

}  // namespace paceline::report
