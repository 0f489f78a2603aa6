#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/text.h"
#include "table/own_cells.h"

namespace paceline::table {
namespace {

/// Whether the batches of the rows grow as the workers do.
bool grows_with_workers(std::span<const Line> rows, std::size_t batch, std::size_t workers) {
  std::optional<double> each;
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const auto& row : rows) {
    const auto b = read_number(plain(row.cells[batch])), n = read_number(plain(row.cells[workers]));
    if (!b || !n || n->value <= 0) return false;
    if (each && *each != b->value / n->value) return false;
    each = b->value / n->value;
    least = std::min(least, n->value);
    most = std::max(most, n->value);
  }
  return most > least;
}

std::optional<Number> number_in(const OwnHeading& heading, const Line& line, std::size_t column) {
  return read_number(cell_of(heading, line.cells[column]));
}

/// A table while it is brought into our columns.
struct OwnTable {
  std::vector<Line> lines;  ///< first the heads
  std::vector<OwnHeading> headings;
  std::vector<std::string> unused;  ///< heads of figures for which there is no column
  [[nodiscard]] std::span<const Line> rows() const { return std::span(lines).subspan(1); }
  [[nodiscard]] std::optional<std::size_t> find(std::string_view column) const {
    for (std::size_t i = 0; i < headings.size(); ++i)
      if (headings[i].name() == column) return i;
    return std::nullopt;
  }
};

bool is_number(std::string_view source) {
  std::string text = plain(source);
  if (text.ends_with('%')) text.pop_back();
  return text.empty() || read_number(text).has_value();
}

/// Whether cells of columns of ours are numbers as people write them: "94%", "1.9x", "9:41".
bool has_own_cells(const OwnTable& table) {
  for (std::size_t i = 0; i < table.headings.size(); ++i) {
    const auto column = Column::find(table.headings[i].name());
    if (!column || !column->is_number()) continue;
    for (const auto& line : table.rows()) {
      const auto cell = trimmed(line.cells[i]);
      const bool is_ours =
          read_number(cell) && !(table.headings[i].has_decimal_comma && cell.find(',') != cell.npos);
      if (!cell.empty() && cell != "unknown" && !is_ours && number_in(table.headings[i], line, i))
        return true;
    }
  }
  return false;
}

/// What a row ran, as far as it stands in columns of ours, in texts and in the columns `settings`.
std::string what_ran(const OwnTable& table, const Line& line, const std::set<std::size_t>& settings) {
  std::string key;
  for (std::size_t i = 0; i < table.headings.size(); ++i) {
    const auto column = Column::find(table.headings[i].name());
    const bool is_setting = !column && (settings.contains(i) || !is_number(line.cells[i]));
    if (is_setting || (column && (column->role() == ColumnRole::configuration ||
                                  *column == Column("repeat") || *column == Column("seed"))))
      key += line.cells[i] + '\x1f';
  }
  return key;
}

void drop_column(OwnTable& table, std::size_t i, std::string_view why) {
  const auto at = static_cast<std::ptrdiff_t>(i);
  table.unused.insert(table.unused.begin(), fmt::format("'{}'{}", table.headings[i].source, why));
  table.headings.erase(table.headings.begin() + at);
  for (auto& line : table.lines) line.cells.erase(line.cells.begin() + at);
}

/// Drops times and rates of which nobody knows what their unit is.
void drop_unknown_units(OwnTable& table) {
  for (std::size_t i = table.headings.size(); i-- > 0;)
    if (table.headings[i].is_unknown) drop_column(table, i, " (in a unit that is not known)");
}

/// Drops figures that are in no column of ours, such as memory: as settings they would forbid every
/// comparison. A number that tells apart rows which otherwise ran the same is a setting, first the one with
/// the fewest values.
void drop_foreign_figures(OwnTable& table) {
  std::vector<std::pair<std::size_t, std::size_t>> foreign;  // number of values, column
  std::set<std::size_t> settings, figures;
  for (std::size_t i = 0; i < table.headings.size(); ++i) {
    if (table.headings[i].ours || table.headings[i].synonym != nullptr) continue;
    std::set<std::string> values;
    bool is_of_numbers = true;
    for (const auto& line : table.rows()) {
      is_of_numbers = is_of_numbers && is_number(line.cells[i]);
      values.insert(line.cells[i]);
    }
    if (is_of_numbers) foreign.emplace_back(values.size(), i);
  }
  std::ranges::sort(foreign);
  for (const auto& [values, i] : foreign) {
    std::map<std::string, std::string> first;
    const bool tells_apart = std::ranges::any_of(table.rows(), [&](const Line& line) {
      const auto [found, is_new] = first.try_emplace(what_ran(table, line, settings), line.cells[i]);
      return !is_new && found->second != line.cells[i];
    });
    (tells_apart ? settings : figures).insert(i);
  }
  for (auto i = figures.rbegin(); i != figures.rend(); ++i) drop_column(table, *i, "");
}

/// Whether the figures of `heading` are the ratios of the first time of an epoch or run to the others.
bool are_ratios_of_times(const OwnTable& table, const OwnHeading& heading, std::size_t i) {
  constexpr double kNear = 0.02;
  const auto time = table.find("time_s");
  const auto* synonym = time ? table.headings[*time].synonym : nullptr;
  if (synonym == nullptr || synonym->meaning == "step") return false;
  const auto t0 = number_in(table.headings[*time], table.lines[1], *time);
  return t0 && std::ranges::all_of(table.rows(), [&](const Line& line) {
           const auto t = number_in(table.headings[*time], line, *time), s = number_in(heading, line, i);
           return !t || !s || std::abs(t0->value - s->value * t->value) <= kNear * t0->value;
         });
}

/// What a column called "scaling" holds: "strong" and "weak", efficiencies (in per cent, or none above 1 on
/// several workers), or speedups. Other words are remarks.
const Synonym* meaning_of_scaling(const OwnTable& table, std::size_t i) {
  constexpr double kMostOfPart = 1.05, kMostOfPerCent = 1.25;  // above it a speedup: "188%"
  OwnHeading heading = table.headings[i];
  heading.ours.reset();
  heading.synonym = synonym_of("efficiency");
  const auto workers = table.find("workers");
  bool has_number = false, in_per_cent = heading.factor == 0.01, is_of_kinds = true;
  double most = 0, least_workers = 0, of_least = 0;
  for (const auto& line : table.rows()) {
    const auto cell = cell_of(table.headings[i], line.cells[i]);
    is_of_kinds = is_of_kinds && (cell.empty() || cell == "strong" || cell == "weak" || cell == "unknown");
    const auto number = number_in(heading, line, i);
    if (!number) continue;
    has_number = true;
    in_per_cent = in_per_cent || line.cells[i].find('%') != std::string::npos;
    const auto n = workers ? number_in(table.headings[*workers], line, *workers) : std::nullopt;
    if (!n || n->value > 1) most = std::max(most, number->value);
    if (n && (least_workers == 0 || n->value < least_workers)) {
      least_workers = n->value;
      of_least = number->value;
    }
  }
  if (!has_number) return is_of_kinds ? synonym_of("scaling") : synonym_of("remark");
  // Per cent without the sign: 100 for the fewest workers.
  if (!in_per_cent && of_least == 100) return synonym_of("efficiency");
  if (are_ratios_of_times(table, heading, i)) return synonym_of("speedup");  // there is no speedup at all
  return synonym_of(most <= (in_per_cent ? kMostOfPerCent : kMostOfPart) ? "efficiency" : "speedup");
}

/// Settles what a head alone does not say: "GPU" may be a number or a name, "Scaling" a word or a claim, a
/// batch that of all workers, an accuracy in per cent.
void read_by_values(OwnTable& table) {
  for (std::size_t i = 0; i < table.headings.size(); ++i) {
    auto& heading = table.headings[i];
    if (!heading.ours && heading.synonym == nullptr) continue;
    if (heading.name() == "scaling") {
      heading.synonym = meaning_of_scaling(table, i);
      if (heading.synonym->column != "scaling") heading.ours.reset();
    }
    const bool has_numbers = std::ranges::any_of(
        table.rows(), [&](const Line& line) { return number_in(heading, line, i).has_value(); });
    if (heading.name() == "workers" && !has_numbers && !heading.ours) heading.synonym = synonym_of("device");
    if (heading.name() == "claim" && has_numbers && !heading.ours) heading.synonym = nullptr;
    if (heading.name() == "accuracy" && heading.factor == 0 &&
        std::ranges::any_of(table.rows(), [&](const Line& line) {
          const auto number = number_in(heading, line, i);
          return number && number->value > 1;
        }))
      heading.factor = 0.01;
  }
  const auto workers = table.find("workers"), batch = table.find("batch");
  if (workers && batch && !table.headings[*batch].ours && grows_with_workers(table.rows(), *batch, *workers))
    table.headings[*batch].synonym = synonym_of("global batch");
}

/// Of the columns of times the one from which the claimed speedups follow, else the first.
std::size_t time_of_claims(const OwnTable& table, const std::vector<std::size_t>& times) {
  constexpr double kNear = 0.02;
  const auto workers = table.find("workers"), claim = table.find("claimed_speedup");
  if (!workers || !claim || times.size() == 1) return times.front();
  std::size_t best = times.front(), most = 0;
  for (const auto column : times) {
    const auto value = [&](const Line& line, std::size_t of) {
      return number_in(table.headings[of], line, of);
    };
    const Line* base = nullptr;
    for (const auto& line : table.rows())
      if (const auto n = value(line, *workers);
          n && (base == nullptr || n->value < value(*base, *workers)->value))
        base = &line;
    std::size_t matches = 0;
    for (const auto& line : table.rows()) {
      const auto s = value(line, *claim), t = value(line, column),
                 t0 = base == nullptr ? std::nullopt : value(*base, column);
      if (s && t && t0 && t->value > 0 && std::abs(t0->value / t->value - s->value) <= kNear * s->value)
        ++matches;
    }
    if (matches > most) best = column;
    most = std::max(most, matches);
  }
  return best;
}

/// The lines of our CSV: one row for each line, or one for each kind of time if there are several columns of
/// times; then figures and claims stand beside the time from which the claims follow.
OwnWords our_words_of(const OwnTable& table, const std::vector<std::string>& facts) {
  std::vector<std::size_t> times;
  std::vector<std::pair<std::string, std::string>> filled;
  for (std::size_t i = 0; i < table.headings.size(); ++i) {
    const auto& heading = table.headings[i];
    if (heading.name() == "time_s") {
      times.push_back(i);
      continue;
    }
    if (heading.synonym != nullptr && !heading.ours && !heading.synonym->also.empty() &&
        !table.find(heading.synonym->also))
      filled.emplace_back(heading.synonym->also, heading.synonym->meaning);
    if (heading.name() == "claimed_bandwidth" && !heading.unit.empty() && !table.find("bandwidth_unit"))
      filled.emplace_back("bandwidth_unit", heading.unit);
  }
  const bool has_kind = table.find("time_of").has_value();
  const auto kind_of = [&](std::size_t i) {
    return table.headings[i].synonym == nullptr ? "" : std::string(table.headings[i].synonym->meaning);
  };
  const std::size_t of_claims = times.empty() ? 0 : time_of_claims(table, times);
  OwnWords words;
  std::string more;  // rows of the other times, behind all lines of the source
  std::vector<std::size_t> of_more;
  const auto row_of = [&](const Line& line, bool is_head, std::size_t time) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < table.headings.size(); ++i) {
      const auto& heading = table.headings[i];
      if (heading.name() == "time_s" && i != time) continue;
      const auto column = Column::find(heading.name());
      const bool is_left_out = time != of_claims && heading.name() != "time_s" && column &&
                               (column->role() == ColumnRole::figure || column->role() == ColumnRole::claim);
      cells.push_back(csv_cell(is_head       ? heading.name()
                               : is_left_out ? ""
                                             : cell_of(heading, line.cells[i])));
    }
    if (!times.empty() && !has_kind) cells.push_back(is_head ? "time_of" : kind_of(time));
    for (const auto& [column, meaning] : filled) cells.push_back(csv_cell(is_head ? column : meaning));
    return fmt::format("{}\n", fmt::join(cells, ","));
  };
  for (const auto& fact : facts) words.csv += fact + '\n';
  std::size_t at = facts.size() + 1;
  for (std::size_t k = 0; k < table.lines.size(); ++k, ++at) {
    const auto& line = table.lines[k];
    for (; at < line.number; ++at) words.csv += "#\n";  // so that errors name the line of the source
    words.csv += row_of(line, k == 0, of_claims);
    if (k == 0) continue;
    words.lines.push_back(line.number);
    for (const auto time : times)
      if (time != of_claims && number_in(table.headings[time], line, time)) {
        more += row_of(line, false, time);
        of_more.push_back(line.number);
      }
  }
  words.csv += more;
  words.lines.insert(words.lines.end(), of_more.begin(), of_more.end());
  return words;
}

std::string note_of(const OwnTable& table, std::size_t summaries) {
  std::vector<std::string> read_as, kept, parts;
  for (const OwnHeading& heading : table.headings) {
    if (heading.ours) continue;
    if (heading.synonym == nullptr) {
      kept.push_back(fmt::format("'{}'", heading.source));
      continue;
    }
    std::string said = fmt::format("{} = {}", heading.source, heading.name());
    if (!heading.synonym->also.empty())
      said += fmt::format(" with {} = {}", heading.synonym->also, heading.synonym->meaning);
    read_as.push_back(std::move(said));
  }
  const auto are = [](const std::vector<std::string>& all) { return all.size() == 1 ? "is" : "are"; };
  if (!read_as.empty()) parts.push_back(fmt::format("read as: {}", fmt::join(read_as, ", ")));
  if (!kept.empty()) parts.push_back(fmt::format("{} {} kept as settings", fmt::join(kept, ", "), are(kept)));
  if (!table.unused.empty())
    parts.push_back(fmt::format("{} {} not used", fmt::join(table.unused, ", "), are(table.unused)));
  const bool has_decimal_comma = std::ranges::any_of(table.rows(), [&](const Line& line) {
    for (std::size_t i = 0; i < table.headings.size(); ++i)
      if (table.headings[i].has_decimal_comma && line.cells[i].find(',') != std::string::npos &&
          number_in(table.headings[i], line, i))
        return true;
    return false;
  });
  if (has_decimal_comma) parts.emplace_back("commas are decimal ones, since ';' separates the cells");
  if (summaries > 0)
    parts.push_back(fmt::format("{} of averages or sums left out", base::counted(summaries, "line")));
  return parts.empty() ? "read without its empty columns and rows"
                       : fmt::format("{}", fmt::join(parts, "; "));
}

/// Two columns of one meaning: the table is not understood. Times of different kinds are.
bool has_twice(const OwnTable& table) {
  std::set<std::string> names;
  return std::ranges::any_of(table.headings, [&](const OwnHeading& heading) {
    const bool is_kind = heading.name() == "time_s" && heading.synonym != nullptr && !table.find("time_of");
    return !names.insert(heading.name() + (is_kind ? std::string(heading.synonym->meaning) : "")).second;
  });
}

}  // namespace

std::optional<OwnWords> in_our_columns(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] == '{' || text[first] == '[') return std::nullopt;
  const bool of_markdown = is_markdown(text);
  std::vector<std::string> facts;
  OwnTable table;
  char separator = ',';
  table.lines = of_markdown ? lines_of_markdown(text) : lines_of_csv(text, facts, separator);
  if (table.lines.size() < 2) return std::nullopt;
  const auto width = table.lines.front().cells.size();
  drop_empty(table.lines);
  if (table.lines.size() < 2) return std::nullopt;
  for (const auto& cell : table.lines.front().cells) {
    table.headings.push_back(own_heading_of(cell));
    table.headings.back().has_decimal_comma = separator == ';';
  }
  for (const Line& line : table.lines)
    if (line.cells.size() != table.headings.size()) return std::nullopt;  // the reader of tables says which
  const bool is_ours =
      std::ranges::all_of(table.headings, [](const OwnHeading& heading) { return heading.ours.has_value(); });
  if (is_ours && !of_markdown && table.headings.size() == width && !has_own_cells(table)) return std::nullopt;
  // In our columns an average is a row with its own meaning (bandwidth.average).
  const auto summaries = is_ours ? 0 : drop_summaries(table.lines);
  if (table.lines.size() < 2) return std::nullopt;
  drop_unknown_units(table);
  read_by_values(table);
  bool has_figure = false, has_claim = false;
  for (const OwnHeading& heading : table.headings) {
    const auto column = Column::find(heading.name());
    has_figure = has_figure || (column && column->role() == ColumnRole::figure);
    has_claim = has_claim || heading.name().starts_with("claimed_");
  }
  if (!(table.find("workers") ? has_figure || has_claim : has_figure && has_claim) || has_twice(table))
    return std::nullopt;
  drop_foreign_figures(table);
  auto words = our_words_of(table, facts);
  words.note = note_of(table, summaries);
  return words;
}

}  // namespace paceline::table
