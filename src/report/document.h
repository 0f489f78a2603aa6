#pragma once

/// A report as data: what every renderer (terminal, Markdown, CSV, JSON, the page) is given.
///
/// answers/ and sections/ build Documents out of analysis results; renderers know nothing of scaling, and
/// hold no sentence of their own about what was measured. The page in web/ reads exactly the JSON of
/// to_json(Document).

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
  std::string
      group{};  ///< columns that the page shows and hides together: "time", "network"; "": always there
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
  std::string mark{};    ///< "" or why this point is special: "oversubscribed", "disturbed", "best"
  std::string record{};  ///< id of the (first) record behind it; "" of lines that were not measured
  int n = 0;             ///< samples behind y; 0: not said
};
struct Series {
  std::string name{};
  std::vector<Point> points{};
  bool dashed = false;  ///< ideal lines, bounds
  bool hidden = false;  ///< drawn only when asked for, by its name in the legend
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

/// How sure an answer is.
///
/// decided        no other candidate's interval reaches it
/// tie            others' intervals overlap with it, and all of them lie within 5 % of it
/// not_decided    they overlap, but reach further
/// careful        something that the chip names makes the figure doubtful: one seed, unknown disturbance
/// not_measured   there is no record that says it
enum class Certainty { decided, tie, not_decided, careful, not_measured };

/// One question with its answer: a tile of the page, a line of the terminal. The one with the id "best" says
/// what to do; it has no question.
struct Answer {
  std::string id{};        ///< "best", "batch", "workers", "limit", "network", "accuracy"
  std::string question{};  ///< "Which batch?"
  Certainty certainty = Certainty::not_measured;
  std::string chip{};    ///< what the certainty rests on, in a word or three: "decided", "3 tie", "one seed"
  std::string figure{};  ///< what is shown large: "32"; of "best" a whole sentence
  std::string unit{};    ///< behind it: "images a worker"
  std::string sentence{};                        ///< at most 20 words and 3 numbers each; at most two
  std::optional<double> value{}, low{}, high{};  ///< of the number that decides, unrounded: images/s, a ratio
  int n = 0;                                     ///< samples behind the value; 0: not said
  std::string evidence{};                        ///< id of the figure or table that shows it
  std::vector<std::string> records{};            ///< ids of the records that it rests on
  std::string command{};  ///< of "best": trains so; of what was not measured: measures it
};

/// What to do next, most useful first.
struct Next {
  struct Step {
    std::string title{}, why{}, command{};
    std::optional<double> seconds{};  ///< that the command is expected to take here
  };
  std::vector<Step> steps{};
  std::vector<std::string> not_answered{};  ///< sentences on what these records cannot say
};

/// A drawing whose title is what one sees in it.
struct Figure {
  /// A level or a region: `axis` 'y' with low and high a band, with low alone a line; 'x' from low on
  /// hatched.
  struct Mark {
    char axis = 'y';
    double low = 0;
    std::optional<double> high{};
    std::string label{};
  };
  struct View {
    std::string name{};  ///< of the button that chooses it: "images/s"
    Axis x{}, y{};
    std::vector<Series> series{};
    std::vector<Mark> marks{};
  };
  std::string id{};
  std::string finding{};  ///< "Two workers with small batches are fastest"
  std::string note{};     ///< how to read it, in one sentence
  std::vector<View> views{};
};

/// How one time becomes another: `from`, the changes one after the other, `to`. Seconds; they add up.
struct Waterfall {
  struct Change {
    std::string name{};
    double seconds = 0;
    std::string hint{};  ///< what could be changed, and what it can give at most; "" where nothing is known
    std::optional<double> low{}, high{};  ///< of the seconds, 95 %
    bool is_noise = false;                ///< its interval holds 0: drawn grey
  };
  /// The same changes of another number of workers, each as a part of its step; what is left of 1 is
  /// efficiency.
  struct Bar {
    std::string name{};  ///< "2 workers"
    double step_s = 0;
    std::vector<double> parts{};  ///< [changes]
  };
  std::string id{}, finding{}, note{};
  std::string from_name{}, to_name{};
  double from = 0, to = 0;
  std::vector<Change> changes{};
  std::vector<Bar> bars{};  ///< by workers; empty where there is but one time
};

/// What ranks did at the same time: spans in lanes, seconds since the first step shown.
struct Timeline {
  struct Span {
    int lane = 0, phase = 0;  ///< into `lanes`, `phases`
    double begin = 0, end = 0;
  };
  std::string id{}, finding{}, note{};
  std::vector<std::string> lanes{};   ///< "rank 0", "rank 0, all-reduce"
  std::vector<std::string> phases{};  ///< "forward", "wait for a rank"
  std::vector<Span> spans{};
};

/// Pairs of cells that were measured twice: B over A.
struct Comparison {
  enum class Word { improved, regressed, no_change, within_noise, not_compared };
  struct Row {
    std::string name{};  ///< of the pair
    Word word = Word::not_compared;
    std::optional<double> ratio{}, low{}, high{};  ///< B / A of the figure, above 1 is better
    std::string before{}, after{};                 ///< the figures, with their unit
    std::string why{};                             ///< of not_compared: the refusal
  };
  std::string id{}, finding{}, note{};
  std::string name_of_ratio{};  ///< "images/s, B over A"
  std::vector<Row> rows{};
};

using Block = std::variant<Paragraph, Table, Plot, Answer, Next, Figure, Waterfall, Timeline, Comparison>;

struct Section {
  std::string id{};     ///< "weak-scaling"
  std::string title{};  ///< "Weak scaling: how many workers?"
  std::vector<Block> blocks{};
  bool is_folded = false;  ///< for who wants all of it: the page shows its title until it is opened
};

struct Document {
  std::string title{};
  std::string subtitle{};                    ///< model, data (synthetic is said here), machine, date
  std::vector<std::string> circumstances{};  ///< a few words each, for the line under the title: "CPU, bf16"
  std::string trust{};  ///< how far to trust it: "quick study: typical interval ±5 %"; "" where usual
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
/// A file each of all tables, plots, views of figures, waterfalls, timelines and comparisons, named by their
/// ids.
struct CsvFile {
  std::string name{}, text{};
  bool is_table = false;
};
[[nodiscard]] std::vector<CsvFile> csv_files(const Document& document);
/// {"schema": "paceline-report-2", "title", "subtitle", "circumstances": [text], "trust", "warnings": [text],
///  "facts": [{"name", "value"}], "sections": [{"id", "title", "folded", "blocks": [block]}]}, where a block
/// is one of
///   {"type": "paragraph", "tone", "text"}
///   {"type": "table", "id", "title", "definition", "footnotes": [text], "rows": number,
///    "columns": [{"key", "label", "unit", "format", "group", "text"?: [..], "value"?: [..], "low"?: [..],
///                 "high"?: [..], "mark"?: [..], "note"?: [..]}]}
///   {"type": "plot", "id", "kind", "title", "caption", "x": axis, "y": axis, "series": [series],
///    "categories": [text]}
///   {"type": "answer", "id", "question", "certainty", "chip", "figure", "unit", "sentence", "value", "low",
///    "high", "n", "evidence", "records": [id], "command"}
///   {"type": "next", "steps": [{"title", "why", "command", "seconds"}], "not_answered": [text]}
///   {"type": "figure", "id", "finding", "note", "views": [{"name", "x": axis, "y": axis, "series": [series],
///    "marks": [{"axis": "x" or "y", "low", "high", "label"}]}]}
///   {"type": "waterfall", "id", "finding", "note", "from": {"name", "seconds"}, "to": {"name", "seconds"},
///    "changes": [{"name", "seconds", "hint", "low", "high", "noise"}],
///    "bars": [{"name", "seconds", "parts": [number]}]}
///   {"type": "timeline", "id", "finding", "note", "lanes": [text], "phases": [text],
///    "spans": {"lane": [..], "phase": [..], "begin": [..], "end": [..]}}
///   {"type": "comparison", "id", "finding", "note", "name_of_ratio", "rows": [{"name", "word", "ratio",
///   "low",
///    "high", "before", "after", "why"}]}
/// with axis {"label", "unit", "log"} and series {"name", "dashed", "hidden", "x": [..], "y": [..],
/// "low"?, "high"?, "mark"?, "record"?, "n"?}. Numbers of rows and points stand in lists of one field; a list
/// marked ? is left out where it would hold nothing but null, "" or 0. Other fields are always there. Enums
/// go by their names ("stacked_bar", "not_decided", "within_noise"); absent optionals and numbers that are
/// not finite are null; an empty text is "". Numbers have seven digits. tests/golden/sample-report.json is an
/// example, sample-report-1.json one of the schema before, which the page still opens.
[[nodiscard]] std::string to_json(const Document& document);
/// One self-contained page: the built web/ page with the JSON embedded.
[[nodiscard]] std::string to_html(const Document& document);

}  // namespace paceline::report
