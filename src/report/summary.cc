#include <fmt/format.h>

#include <algorithm>

#include "report/document.h"
#include "report/text.h"

// The report in a few lines of Markdown: the page of a CI's job shows it, with a hundred others.

namespace paceline::report {
namespace {

constexpr std::size_t kLines = 25;

/// A row of a Markdown table.
std::string row_of(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const auto& cell : cells) line += " " + markdown_cell(cell) + " |";
  return line;
}

/// The rows behind their heading, at most `most` of them, then how many are not shown.
void add_summary_rows(std::vector<std::string>& lines, const std::vector<std::string>& heads,
                      const std::vector<std::vector<std::string>>& rows, std::size_t most) {
  if (rows.empty() || most == 0) return;
  lines.push_back(row_of(heads));
  lines.push_back(row_of(std::vector<std::string>(heads.size(), "---")));
  const std::size_t shown = rows.size() > most ? most - 1 : rows.size();
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(row_of(rows[i]));
  if (shown < rows.size()) {
    std::vector<std::string> last(heads.size());
    last.front() = fmt::format("{} more", rows.size() - shown);
    lines.push_back(row_of(last));
  }
  lines.emplace_back();
}

}  // namespace

std::string to_summary(const Document& document) {
  std::vector<std::string> lines{"### " + without_markup(document.title), ""};
  std::vector<std::vector<std::string>> expected, answers, changed;
  std::string said;
  auto expectations = document.expectations;
  constexpr auto kLast = Expectation::Verdict::pass;  // what is left out of a long list has passed
  std::ranges::stable_partition(expectations, [&](const auto& one) { return one.verdict != kLast; });
  std::ranges::stable_partition(expectations,
                                [](const auto& one) { return one.verdict == Expectation::Verdict::fail; });
  for (const auto& one : expectations)
    expected.push_back({text_of(one.verdict), one.text, one.figure.empty() ? "–" : one.figure,
                        one.mark + (one.mark.empty() || one.why.empty() ? "" : ". ") + one.why});
  const auto say = [&](const std::string& text) { said += (said.empty() ? "" : " ") + without_markup(text); };
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks) {
      if (const auto* answer = std::get_if<Answer>(&block)) {
        if (answer->question.empty()) {
          said += fmt::format("{}**{}** {}", said.empty() ? "" : " ", without_markup(answer->figure),
                              without_markup(answer->sentence));
          if (!answer->chip.empty()) say(fmt::format("({} {})", sign_of(answer->certainty), answer->chip));
        } else {
          answers.push_back({answer->question, figure_with_unit(*answer),
                             fmt::format("{} {}", sign_of(answer->certainty), chip_or_word(*answer)),
                             answer->sentence});
        }
      } else if (const auto* comparison = std::get_if<Comparison>(&block)) {
        say(comparison->finding + ".");
        for (const auto& row : comparison->rows)
          if (row.word == Comparison::Word::regressed || row.word == Comparison::Word::improved)
            changed.push_back(
                {row.name, text_of(row.word), row.ratio ? number(*row.ratio) : "–", row.before, row.after});
      }
    }
  if (said.empty()) say(document.subtitle);
  if (!said.empty()) lines.insert(lines.end(), {said, ""});
  const std::string warnings =
      document.warnings.empty()
          ? ""
          : fmt::format("> {}{}", without_markup(document.warnings.front()),
                        document.warnings.size() > 1
                            ? fmt::format(" ({} more in the report)", document.warnings.size() - 1)
                            : "");
  const std::size_t last = warnings.empty() ? 0 : 2;
  // A table takes two lines for its head and one behind it.
  const auto room = [&] { return kLines > lines.size() + last + 3 ? kLines - lines.size() - last - 3 : 0; };
  const std::size_t of_answers = answers.empty() ? 0 : std::min<std::size_t>(answers.size(), 5) + 3;
  add_summary_rows(lines, {"", "expected", "measured", "careful"}, expected,
                   room() > of_answers ? room() - of_answers : 0);
  add_summary_rows(lines, {"question", "answer", "how sure", ""}, answers, room());
  add_summary_rows(lines, {"cell", "B is", "ratio", "A", "B"}, changed, room());
  if (!warnings.empty()) lines.push_back(warnings);
  std::string out;
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (const auto& line : lines) out += line + "\n";
  return out;
}

}  // namespace paceline::report
