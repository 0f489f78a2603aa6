#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "report/document.h"
#include "report/sections/parts.h"
#include "report/terminal_text.h"
#include "report/text.h"

// Tables for a LaTeX document: article and booktabs, nothing else. A table that is wider than a line or
// longer than a page becomes several, each with the columns that name its rows.

namespace paceline::report {
namespace {

/// Letters that pdflatex prints as something else, or refuses, and what prints them in any encoding of fonts.
struct Letter {
  char32_t letter;
  const char* written;
};
constexpr Letter kLetters[] = {
    {U'\\', "$\\backslash$"},
    {U'{', "\\{"},
    {U'}', "\\}"},
    {U'$', "\\$"},
    {U'&', "\\&"},
    {U'#', "\\#"},
    {U'%', "\\%"},
    {U'_', "\\_"},
    {U'^', "\\textasciicircum{}"},
    {U'~', "$\\sim$"},
    {U'<', "$<$"},
    {U'>', "$>$"},
    {U'|', "$|$"},
    {U'"', "''"},
    {U'`', "{`}"},
    {U'[', "{[}"},  // behind the end of a row it would be an argument
    {U'*', "{*}"},
    {U'\u00a0', "~"},
    {U'±', "$\\pm$"},
    {U'×', "$\\times$"},
    {U'÷', "$\\div$"},
    {U'·', "$\\cdot$"},
    {U'°', "$^\\circ$"},
    {U'²', "$^2$"},
    {U'³', "$^3$"},
    {U'µ', "$\\mu$"},
    {U'μ', "$\\mu$"},
    {U'α', "$\\alpha$"},
    {U'β', "$\\beta$"},
    {U'σ', "$\\sigma$"},
    {U'Δ', "$\\Delta$"},
    {U'–', "--"},
    {U'—', "---"},
    {U'‘', "{`}"},
    {U'’', "'"},
    {U'“', "``"},
    {U'”', "''"},
    {U'…', "\\dots{}"},
    {U'†', "$\\dagger$"},
    {U'‡', "$\\ddagger$"},
    {U'≈', "$\\approx$"},
    {U'≠', "$\\ne$"},
    {U'≤', "$\\le$"},
    {U'≥', "$\\ge$"},
    {U'→', "$\\to$"},
    {U'←', "$\\leftarrow$"},
    {U'∞', "$\\infty$"},
    {U'−', "$-$"},
    {U'✓', "$\\surd$"},
    {U'✗', "$\\times$"},
    {U'⁻', "$^-$"},
    {U'\ufffd', "?"},
};

/// The code points of text that base::visible() made, which is UTF-8.
std::u32string code_points(std::string_view text) {
  std::u32string points;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    char32_t point = length == 1 ? byte : byte & (0xffU >> (length + 1));
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k)
      point = point << 6U | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    points += point;
    i += length;
  }
  return points;
}

std::string utf8_of_latin(char32_t letter) {
  return {static_cast<char>(0xc0U | letter >> 6U), static_cast<char>(0x80U | (letter & 0x3fU))};
}

/// One letter. Letters of western Europe stay: every LaTeX since 2018 reads them. Any other is written by its
/// number, which compiles and can be found again.
std::string latex_letter(char32_t letter) {
  for (const auto& [special, written] : kLetters)
    if (letter == special) return written;
  if (letter < 0x80) return {static_cast<char>(letter)};
  constexpr std::u32string_view kOnlyInT1 = U"ÐðÞþ";
  const bool is_western =
      letter >= 0xc0 && letter <= 0xff && kOnlyInT1.find(letter) == std::u32string_view::npos;
  return is_western ? utf8_of_latin(letter)
                    : fmt::format("{{[}}U+{:04X}]", static_cast<std::uint32_t>(letter));
}

constexpr std::size_t kLongWord = 16;  // longer ones may be broken

/// `text` as LaTeX prints it. Two hyphens stay two, since a command's option is no dash.
std::string latex(std::string_view text) {
  std::string out;
  const auto points = code_points(base::visible(text));
  std::size_t word = 0, since_break = 0, length = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const char32_t letter = points[i];
    if (word == 0)
      for (length = 0; i + length < points.size() && points[i + length] != U' ';) ++length;
    out += latex_letter(letter);
    if (letter == U'-' && i + 1 < points.size() && points[i + 1] == U'-') out += "{}";
    word = letter == U' ' ? 0 : word + 1;
    since_break = letter == U' ' ? 0 : since_break + 1;
    constexpr std::u32string_view kEnds = U"/-,_=.:";
    const bool may_end = since_break >= kLongWord || kEnds.find(letter) != std::u32string_view::npos;
    if (length > kLongWord && word > 2 && word + 2 < length && may_end) {
      out += "\\allowbreak{}";
      since_break = 0;
    }
  }
  return out;
}

// Widths, in letters of \footnotesize; \scriptsize, for intervals, takes less.
constexpr double kLine = 82;
constexpr double kBetween = 1.5;  // two columns
constexpr double kSmall = 0.85;
constexpr double kPoints = 3.95;   // a letter
constexpr std::size_t kRows = 42;  // lines of a page

/// `stacked`: the interval stands below its figure.
double width_of_cell(const CellText& text, bool stacked) {
  double width = static_cast<double>(display_width(text.figure));
  const double interval = kSmall * static_cast<double>(display_width(text.interval));
  if (!text.mark.empty()) width += 1 + static_cast<double>(display_width(text.mark));
  return text.interval.empty() ? width : stacked ? std::max(width, interval) : width + 1 + interval;
}

std::string latex_cell(const CellText& text, bool stacked) {
  if (stacked && !text.interval.empty())
    return fmt::format("\\begin{{tabular}}[t]{{@{{}}r@{{}}}}{}\\\\{{\\scriptsize {}}}\\end{{tabular}}",
                       latex_cell({text.figure, "", text.mark}, false), latex(text.interval));
  std::string out = latex(text.figure);
  if (!text.interval.empty())
    out += (out.empty() ? "" : " ") + ("{\\scriptsize " + latex(text.interval) + "}");
  if (!text.mark.empty()) out += (out.empty() ? "" : " ") + latex(text.mark);
  return out;
}

/// How a column is set: as wide as its widest cell, or as a paragraph.
struct Set {
  double width = 0;
  bool is_paragraph = false;
};

constexpr double kParagraph = 24;  // texts longer than this may be broken

Set set_of_column(const Table& table, std::size_t i, bool stacked) {
  const Column& column = table.columns[i];
  Set set;
  for (const auto& row : table.rows)
    set.width = std::max(set.width, width_of_cell(cell_text(row[i], column.format), stacked));
  constexpr double kHead = 9;  // a head of several words needs no more
  const auto head = heading(column);
  double word = 0;
  for (const auto& one : words_of(head)) word = std::max(word, static_cast<double>(display_width(one)));
  set.width = std::max({set.width, word, std::min(kHead, static_cast<double>(display_width(head)))});
  set.is_paragraph = column.format == Format::text && set.width > kParagraph;
  return set;
}

/// Gives the paragraphs among `places` the room that the others leave, by their lengths, and returns whether
/// all fit.
bool fit(std::vector<Set>& sets, const std::vector<std::size_t>& places) {
  double fixed = kBetween * static_cast<double>(places.size()), wanted = 0;
  for (const std::size_t i : places) (sets[i].is_paragraph ? wanted : fixed) += sets[i].width;
  if (fixed + wanted <= kLine) {
    for (const std::size_t i : places) sets[i].is_paragraph = false;
    return true;
  }
  bool fits = fixed <= kLine;
  for (const std::size_t i : places) {
    if (!sets[i].is_paragraph) continue;
    sets[i].width = std::min(sets[i].width, std::max(kParagraph, (kLine - fixed) * sets[i].width / wanted));
  }
  double all = fixed;
  for (const std::size_t i : places) all += sets[i].is_paragraph ? sets[i].width : 0;
  return fits && all <= kLine;
}

/// Whether no row has anything in a column.
bool is_empty(const Table& table, std::size_t i) {
  return std::ranges::all_of(table.rows, [&](const auto& row) {
    return one_line(cell_text(row[i], table.columns[i].format)).empty();
  });
}

/// The columns of each part: all in one if they fit, else those that name the row with some of the others.
std::vector<std::vector<std::size_t>> parts_of_columns(const Table& table, const std::vector<Set>& sets) {
  std::vector<std::size_t> all, keys{0};
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (i == 0 || !is_empty(table, i)) all.push_back(i);
  if (auto copy = sets; fit(copy, all)) return {all};
  const auto is_key = [&](std::size_t i) {
    const Format format = table.columns[i].format;
    return format == Format::integer || (format == Format::text && sets[i].width <= kParagraph);
  };
  if (all.size() > 2 && is_key(all[1])) keys.push_back(all[1]);
  std::vector<std::vector<std::size_t>> parts{keys};
  for (std::size_t k = keys.size(); k < all.size(); ++k) {
    const std::size_t i = all[k];
    parts.back().push_back(i);
    if (auto copy = sets; fit(copy, parts.back()) || parts.back().size() == keys.size() + 1) continue;
    parts.back().pop_back();
    parts.push_back(keys);
    parts.back().push_back(i);
  }
  return parts;
}

std::string latex_heading(const Column& column, const Set& set) {
  std::string out;
  const auto lines = wrapped(heading(column), static_cast<std::size_t>(set.width + 0.5));
  for (const auto& line : lines) out += (out.empty() ? "" : "\\\\") + latex(line);
  const char side = column.format == Format::text ? 'l' : 'r';
  return lines.size() < 2 ? out : fmt::format("\\shortstack[{}]{{{}}}", side, out);
}

/// Lines that a row takes.
std::size_t lines_of_row(const std::vector<TableCell>& row, const std::vector<Set>& sets,
                         const std::vector<std::size_t>& places, bool stacked) {
  std::size_t lines = 1;
  for (const std::size_t i : places)
    if (stacked && row[i].low)
      lines = std::max<std::size_t>(lines, 2);
    else if (sets[i].is_paragraph)
      lines = std::max(lines, 1 + static_cast<std::size_t>(static_cast<double>(display_width(row[i].text)) /
                                                           (0.9 * sets[i].width)));
  return lines;
}

/// Rows [begin, end) of some columns, from \begin{tabular} on.
std::string tabular(const Table& table, const std::vector<Set>& sets, const std::vector<std::size_t>& places,
                    std::size_t begin, std::size_t end, bool stacked) {
  std::string out = "\\begin{tabular}{@{}", head;
  for (const std::size_t i : places) {
    const bool is_text = table.columns[i].format == Format::text;
    out += sets[i].is_paragraph ? fmt::format("p{{{:.0f}pt}}", kPoints * sets[i].width) : is_text ? "l" : "r";
    head += (head.empty() ? "" : " & ") + latex_heading(table.columns[i], sets[i]);
  }
  out += "@{}}\n\\toprule\n" + head + " \\tabularnewline\n\\midrule\n";
  for (std::size_t r = begin; r < end; ++r) {
    std::string line;
    for (const std::size_t i : places) {
      if (i != places.front()) line += " & ";
      if (sets[i].is_paragraph) line += "\\raggedright\\hspace{0pt}";
      line += latex_cell(cell_text(table.rows[r][i], table.columns[i].format), stacked);
    }
    out += line + " \\tabularnewline\n";
  }
  return out + "\\bottomrule\n\\end{tabular}\n";
}

/// The table as floats, one or several.
std::string latex_table(const Table& table, const std::string& name, const std::string& subject) {
  const auto sets_of = [&](bool stacked) {
    std::vector<Set> sets;
    for (std::size_t i = 0; i < table.columns.size(); ++i) sets.push_back(set_of_column(table, i, stacked));
    return sets;
  };
  auto sets = sets_of(false);
  const bool stacked = parts_of_columns(table, sets).size() > 1;
  if (stacked) sets = sets_of(true);
  struct Part {
    std::vector<std::size_t> places;
    std::vector<Set> sets;
    std::size_t begin = 0, end = 0;
  };
  std::vector<Part> parts;
  for (const auto& places : parts_of_columns(table, sets)) {
    auto own = sets;
    (void)fit(own, places);
    parts.push_back({places, own, 0, 0});
    std::size_t used = 0;
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      const auto lines = lines_of_row(table.rows[r], own, places, stacked);
      if (used > 0 && used + lines > kRows) {
        parts.push_back({places, own, r, r});
        used = 0;
      }
      used += lines;
      parts.back().end = r + 1;
    }
  }
  std::string out;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const Part& part = parts[k];
    out += "\\begin{table}[htbp]\n\\centering\\footnotesize\\setlength{\\tabcolsep}{3pt}\n";
    out += fmt::format("\\caption{{{}{}}}\n\\label{{tab:{}{}}}\n", latex(table.title),
                       parts.size() > 1 ? fmt::format(" (part {} of {})", k + 1, parts.size()) : "", name,
                       k > 0 ? fmt::format("-part-{}", k + 1) : "");
    out += tabular(table, part.sets, part.places, part.begin, part.end, stacked);
    std::string notes;
    const auto note = [&](const std::string& text) {
      if (!text.empty()) notes += (notes.empty() ? "" : "\\par\n") + latex(text);
    };
    if (k == 0) note(table.definition);
    for (const auto& footnote : table.footnotes) note(footnote);
    note(subject);
    if (!notes.empty())
      out += "\n\\medskip\n\\parbox{\\linewidth}{\\raggedright\\scriptsize " + notes + "}\n";
    out += "\\end{table}\n";
  }
  return out;
}

/// The answers of a section as a table; no rows if it has none.
Table answers_of(const Section& section) {
  Table table{.id = section.id,
              .title = section.title,
              .columns = {{.key = "question", .label = "question"},
                          {.key = "answer", .label = "answer"},
                          {.key = "certainty", .label = "how sure"},
                          {.key = "sentence", .label = "in words"}}};
  for (const Block& block : section.blocks)
    if (const auto* one = std::get_if<Answer>(&block))
      table.rows.push_back({{.text = one->question.empty() ? "What to do?" : one->question},
                            {.text = figure_with_unit(*one)},
                            {.text = chip_or_word(*one)},
                            {.text = one->sentence}});
  return table;
}

}  // namespace

std::vector<NamedText> latex_files(const Document& document) {
  std::vector<Table> tables;
  if (!document.expectations.empty()) tables.push_back(as_table(document.expectations));
  for (const Section& section : document.sections) {
    if (Table answers = answers_of(section); !answers.rows.empty()) tables.push_back(std::move(answers));
    for (const Block& block : section.blocks) {
      if (std::holds_alternative<Timeline>(block)) continue;  // svg_figures() draws it
      for (Table& table : tables_of(block)) tables.push_back(std::move(table));
      // The column that is a drawing: no font of LaTeX has its letters.
      if (std::holds_alternative<Strip>(block)) remove_column(tables.back(), "steps");
    }
  }
  if (!document.facts.empty()) {
    Table& facts = tables.emplace_back(
        Table{.id = "circumstances",
              .title = "Circumstances",
              .columns = {{.key = "what", .label = "what"}, {.key = "value", .label = "value"}}});
    for (const auto& [what, value] : document.facts) facts.rows.push_back({{.text = what}, {.text = value}});
  }

  std::string warnings, inputs;
  for (const auto& warning : document.warnings) warnings += "\\par Warning: " + latex(warning) + "\n";
  std::vector<NamedText> files;
  OwnNames names{"tables"};
  for (const Table& table : tables) {
    if (table.columns.empty() || table.rows.empty()) continue;
    const auto name = names.next(table.id);
    files.push_back({name, "% " + base::visible(document.title) + ": needs \\usepackage{booktabs}\n" +
                               latex_table(table, name, document.subtitle)});
    inputs += fmt::format("\\input{{{}}}\n\\clearpage\n", name);
  }
  files.push_back(
      {"tables", "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n\\section*{" +
                     latex(document.title) + "}\n" + latex(document.subtitle) + "\n" + warnings +
                     "\\clearpage\n" + inputs + "\\end{document}\n"});
  return files;
}

}  // namespace paceline::report
