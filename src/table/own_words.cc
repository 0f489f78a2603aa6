#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <vector>

#include "base/error.h"
#include "table/table.h"

namespace paceline::table {
namespace {

/// People's words for a column, in small letters, and what they say besides.
struct Synonym {
  std::string_view column;
  std::string_view words;         ///< separated by '|'
  std::string_view also = {};     ///< another column that they fill in
  std::string_view meaning = {};  ///< its value
};

constexpr Synonym kSynonyms[] = {
    {"run", "name|config|configuration|experiment"},
    {"workers",
     "gpus|gpu|# gpus|#gpus|no. of gpus|number of gpus|num gpus|gpu count|ngpus|n|workers|ranks|"
     "processes|procs|world size|devices|number of workers"},
    {"nodes", "nodes|number of nodes|hosts|machines"},
    {"local_batch",
     "batch per gpu|batch size per gpu|batch/gpu|per-gpu batch|per gpu batch|local batch|"
     "local batch size|batch per worker|batch size per worker"},
    {"global_batch", "global batch|global batch size|total batch|total batch size|effective batch size"},
    {"batch", "batch|batch size|batchsize|bs"},
    {"time_s", "epoch time|time per epoch|time/epoch|epoch duration|sec/epoch|s/epoch", "time_of", "epoch"},
    {"time_s", "step time|time per step|time/step|iteration time|time per iteration|time/iter|s/iter|s/step",
     "time_of", "step"},
    {"time_s", "total time|training time|wall time|run time|runtime|time to train", "time_of", "run"},
    {"time_s", "time|duration|elapsed"},
    {"rate_per_s",
     "throughput|images/s|images/sec|img/s|img/sec|imgs/sec|imgs/s|samples/s|samples/sec|"
     "images per second|samples per second|speed"},
    {"claimed_speedup", "speedup|speed-up|speed up|scaling factor|scaling"},
    {"claimed_efficiency", "efficiency|scaling efficiency|parallel efficiency"},
    {"accuracy", "accuracy|test accuracy|top-1|top1|top-1 accuracy|acc|acc."},
    {"loss", "loss|test loss"},
    {"learning_rate", "lr|learning rate"},
};

std::string plain(std::string_view text) {
  std::string words;
  for (const char letter : text) {
    const char small = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (small == '*' || small == '`' || (small == '_' && text.size() > 1)) {
      if (small == '_') words += ' ';
      continue;
    }
    words += small;
  }
  return std::string(trimmed(words));
}

/// Seconds of a unit of time; 0: not one.
double seconds_of(std::string_view unit) {
  static const std::map<std::string_view, double> kUnits{
      {"s", 1},     {"sec", 1},      {"secs", 1}, {"seconds", 1},  {"ms", 1e-3}, {"min", 60},
      {"mins", 60}, {"minutes", 60}, {"h", 3600}, {"hours", 3600}, {"hrs", 3600}};
  const auto found = kUnits.find(unit);
  return found == kUnits.end() ? 0 : found->second;
}

struct OwnHeading {
  std::string source;                 ///< as in the table
  const Synonym* synonym = nullptr;   ///< null: a column of ours, or a setting
  std::optional<std::string> ours{};  ///< the name of a column of ours
  double seconds = 0;                 ///< of the unit in brackets
  [[nodiscard]] std::string name() const {
    if (ours) return *ours;
    if (synonym != nullptr) return std::string(synonym->column);
    std::string name = plain(source);
    std::ranges::replace(name, ' ', '-');
    return std::string(kSettingPrefix) + name;
  }
};

const Synonym* synonym_of(std::string_view words) {
  for (const Synonym& one : kSynonyms)
    for (std::size_t at = 0; at <= one.words.size();) {
      const auto end = std::min(one.words.find('|', at), one.words.size());
      if (one.words.substr(at, end - at) == words) return &one;
      at = end + 1;
    }
  return nullptr;
}

OwnHeading own_heading_of(const std::string& source) {
  OwnHeading heading{.source = std::string(trimmed(source))};
  if (Column::find(heading.source) || heading.source.starts_with(kSettingPrefix)) {
    heading.ours = heading.source;
    return heading;
  }
  std::string words = plain(source), unit;
  if (const auto open = words.find_first_of("(["); open != std::string::npos) {
    const auto close = words.find_first_of(")]", open);
    unit = std::string(trimmed(
        std::string_view(words).substr(open + 1, close == std::string::npos ? close : close - open - 1)));
    words = std::string(trimmed(std::string_view(words).substr(0, open)));
  }
  // "epoch time s", of epoch_time_s
  if (const auto blank = words.rfind(' ');
      unit.empty() && blank != std::string::npos && seconds_of(words.substr(blank + 1)) > 0) {
    unit = words.substr(blank + 1);
    words.resize(blank);
  }
  heading.synonym = synonym_of(words);
  heading.seconds = seconds_of(unit);
  return heading;
}

/// "1,655" -> "1655".
std::string without_thousands(std::string text) {
  const auto comma = text.find(',');
  if (comma == std::string::npos || comma > 3) return text;
  for (std::size_t at = comma; at != std::string::npos; at = text.find(',', at + 1))
    if (text.size() < at + 4 || !std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                             text.begin() + static_cast<std::ptrdiff_t>(at) + 4,
                                             [](unsigned char letter) { return std::isdigit(letter) != 0; }))
      return text;
  std::erase(text, ',');
  return text;
}

/// `number` times `factor`, with digits whose half unit is not smaller than that of the number.
std::string converted(const Number& number, double factor) {
  const double value = number.value * factor, half = number.half_unit * factor;
  if (value == 0 || half <= 0) return fmt::format("{:.12g}", value);
  const auto unit = static_cast<int>(std::ceil(std::log10(2 * half) - 1e-9));  // 10^unit >= 2 half
  const auto size = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}e}", value, std::max(0, size - unit));
}

/// A cell in our form: without "x", "%", units and thousands; "" if it is empty or a dash.
std::string cell_of(const OwnHeading& heading, std::string_view source) {
  std::string text = plain(source);
  if (text.empty() || text == "-" || text == "–" || text == "n/a" || text == "na") return "";
  if (heading.synonym == nullptr) return std::string(trimmed(source));
  const std::string column = heading.name();
  if (column == "run") return std::string(trimmed(source));
  text = without_thousands(std::move(text));
  for (const std::string_view times : {"x", "×"})
    if (text.ends_with(times))
      text = std::string(trimmed(std::string_view(text).substr(0, text.size() - times.size())));
  double factor = heading.seconds > 0 && column == "time_s" ? heading.seconds : 1;
  if (text.ends_with('%')) {
    text = std::string(trimmed(std::string_view(text).substr(0, text.size() - 1)));
    factor = 0.01;
  } else if (column == "time_s") {
    const auto end = text.find_first_not_of("0123456789.+-e");
    if (end != std::string::npos && seconds_of(trimmed(std::string_view(text).substr(end))) > 0) {
      factor = seconds_of(trimmed(std::string_view(text).substr(end)));
      text = std::string(trimmed(std::string_view(text).substr(0, end)));
    }
  }
  const auto number = read_number(text);
  if (!number) return std::string(trimmed(source));  // the reader says what is wrong with it
  return factor == 1 ? text : converted(*number, factor);
}

struct Line {
  std::size_t number = 0;
  std::vector<std::string> cells;
};

/// "| 1 | 2 |" -> {"1", "2"}.
std::vector<std::string> cells_of_markdown(std::string_view line) {
  line = trimmed(line);
  if (line.starts_with('|')) line.remove_prefix(1);
  if (line.ends_with('|')) line.remove_suffix(1);
  std::vector<std::string> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const auto end = std::min(line.find('|', at), line.size());
    cells.emplace_back(trimmed(line.substr(at, end - at)));
    at = end + 1;
  }
  return cells;
}

/// The table of a Markdown text: its first lines that begin with '|', without the line of dashes.
std::vector<Line> lines_of_markdown(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto line = trimmed(take_line(text));
    if (!line.starts_with('|')) {
      if (!lines.empty()) break;
      continue;
    }
    if (line.find_first_not_of("|-: ") == std::string_view::npos) continue;
    lines.push_back({number, cells_of_markdown(line)});
  }
  return lines;
}

std::vector<Line> lines_of_csv(std::string_view text) {
  std::vector<Line> lines;
  try {
    for (const auto& cells : read_csv(text, "", 1)) {
      Line line{.number = cells.front().line};
      for (const auto& cell : cells) line.cells.push_back(cell.text);
      lines.push_back(std::move(line));
    }
  } catch (const base::Error&) {
    return {};  // the reader of tables says what is wrong
  }
  return lines;
}

bool is_blank(const Line& line) {
  return std::ranges::all_of(line.cells, [](const std::string& cell) { return trimmed(cell).empty(); });
}

/// Drops columns at the right that have neither a head nor a value, and rows without a value.
void drop_empty(std::vector<Line>& lines) {
  while (!lines.front().cells.empty() && trimmed(lines.front().cells.back()).empty()) {
    const auto column = lines.front().cells.size() - 1;
    if (std::ranges::any_of(lines, [&](const Line& line) {
          return line.cells.size() > column && !trimmed(line.cells[column]).empty();
        }))
      return;
    for (Line& line : lines)
      if (line.cells.size() > column) line.cells.resize(column);
  }
  std::erase_if(lines, is_blank);
}

/// Whether the batches of the rows grow as the workers do.
bool grows_with_workers(const std::vector<Line>& lines, std::size_t batch, std::size_t workers) {
  std::optional<double> each;
  double least = 0, most = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto b = read_number(without_thousands(plain(lines[i].cells[batch])));
    const auto n = read_number(plain(lines[i].cells[workers]));
    if (!b || !n || n->value <= 0) return false;
    if (each && *each != b->value / n->value) return false;
    each = b->value / n->value;
    least = i == 1 ? n->value : std::min(least, n->value);
    most = std::max(most, n->value);
  }
  return most > least;
}

}  // namespace

std::optional<OwnWords> in_our_columns(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] == '{' || text[first] == '[' || text[first] == '#')
    return std::nullopt;
  auto lines = text[first] == '|' ? lines_of_markdown(text) : lines_of_csv(text);
  if (lines.size() < 2) return std::nullopt;
  drop_empty(lines);
  if (lines.size() < 2) return std::nullopt;
  std::vector<OwnHeading> headings;
  std::size_t ours = 0;
  std::optional<std::size_t> workers, batch;
  bool has_figure = false;
  for (std::size_t i = 0; i < lines.front().cells.size(); ++i) {
    headings.push_back(own_heading_of(lines.front().cells[i]));
    const std::string name = headings.back().name();
    ours += headings.back().ours ? 1 : 0;
    if (name == "workers") workers = i;
    if (name == "batch") batch = i;
    has_figure = has_figure || name == "time_s" || name == "rate_per_s" || name.starts_with("claimed_");
  }
  const bool is_changed =
      text[first] == '|' || ours < headings.size() ||
      std::ranges::count(text.substr(0, text.find('\n')), ',') + 1 != std::ssize(headings);
  if (!workers || !has_figure || !is_changed || lines.size() < 2) return std::nullopt;
  for (const Line& line : lines)
    if (line.cells.size() != headings.size()) return std::nullopt;  // the reader of tables says which
  if (batch && !headings[*batch].ours && grows_with_workers(lines, *batch, *workers))
    headings[*batch].synonym = synonym_of("global batch");

  std::vector<std::string> names, read_as, kept;
  std::vector<std::pair<std::string, std::string>> filled;
  for (const OwnHeading& heading : headings) {
    names.push_back(heading.name());
    if (heading.ours) continue;
    if (heading.synonym == nullptr) {
      kept.push_back(fmt::format("'{}'", heading.source));
      continue;
    }
    std::string said = fmt::format("{} = {}", heading.source, names.back());
    if (!heading.synonym->also.empty()) {
      filled.emplace_back(heading.synonym->also, heading.synonym->meaning);
      said += fmt::format(" with {} = {}", heading.synonym->also, heading.synonym->meaning);
    }
    read_as.push_back(std::move(said));
  }
  for (std::size_t i = 0; i < names.size(); ++i)  // two columns of one meaning: the table is not understood
    if (std::find(names.begin() + static_cast<std::ptrdiff_t>(i) + 1, names.end(), names[i]) != names.end())
      return std::nullopt;
  std::erase_if(filled, [&](const auto& one) { return std::ranges::find(names, one.first) != names.end(); });

  OwnWords result;
  std::size_t at = 1;
  for (std::size_t row = 0; row < lines.size(); ++row) {
    for (; at < lines[row].number; ++at) result.csv += "#\n";  // so that findings name the line of the source
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < headings.size(); ++i)
      cells.push_back(csv_cell(row == 0 ? names[i] : cell_of(headings[i], lines[row].cells[i])));
    for (const auto& [column, meaning] : filled) cells.push_back(row == 0 ? column : meaning);
    result.csv += fmt::format("{}\n", fmt::join(cells, ","));
    ++at;
  }
  if (!read_as.empty()) result.note = fmt::format("read as: {}", fmt::join(read_as, ", "));
  if (!kept.empty())
    result.note += fmt::format("{}{} {} kept as settings", result.note.empty() ? "" : "; ",
                               fmt::join(kept, ", "), kept.size() == 1 ? "is" : "are");
  if (result.note.empty()) result.note = "read without its empty columns and rows";
  return result;
}

}  // namespace paceline::table
