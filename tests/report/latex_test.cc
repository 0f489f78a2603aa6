// The tables as LaTeX: what each file holds, and, where pdflatex is installed, that it compiles.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "report/build.h"
#include "report/document.h"
#include "report/golden.h"
#include "report/sample.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::map<std::string, std::string> files_of(const Document& document) {
  std::map<std::string, std::string> files;
  for (const auto& file : latex_files(document)) files[file.name] = file.text;
  return files;
}

Document document_of(Table table) {
  return {.title = "t", .sections = {{.id = "s", .title = "S", .blocks = {std::move(table)}}}};
}

/// A table of one text in its cell, title, heading and footnote.
Document everywhere(const std::string& text) {
  return document_of(
      {.id = "odd",
       .title = text,
       .definition = text,
       .columns = {{.key = "a", .label = text}, {.key = "b", .label = "b", .format = Format::rate}},
       .rows = {{{.text = text}, {.value = 1, .low = 0.9, .high = 1.1, .mark = "†"}}},
       .footnotes = {text}});
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t number = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

TEST(Latex, KeepsIntervalsAndMarks) {
  expect_golden("sample-scale-weak-time.tex", files_of(sample_document()).at("scale-weak-time"));
}

TEST(Latex, EscapesWhatLatexWouldRead) {
  const auto text = files_of(everywhere(R"(50 % of $x_1^2$ & {a} #3 ~ \b <c> --lr "d" [e] *)")).at("odd");
  EXPECT_THAT(text,
              HasSubstr("50 \\% of \\$x\\_1\\textasciicircum{}2\\$ \\& \\{a\\} \\#3 $\\sim$ $\\backslash$b "
                        "$<$c$>$ -{}-lr ''d'' {[}e] {*}"));
}

// The marks of the tables have letters; any other that pdflatex lacks is written by its number.
TEST(Latex, WritesEveryLetterSoThatItCompiles) {
  const auto text = files_of(everywhere("† ≈ é 中 \x1b[31m \xff")).at("odd");
  EXPECT_THAT(text, HasSubstr("$\\dagger$ $\\approx$ é {[}U+4E2D] $\\backslash$x1b{[}31m $\\backslash$xff"));
}

TEST(Latex, DividesAWideTableByColumns) {
  Table table{.id = "wide", .title = "Wide", .columns = {{.key = "cell", .label = "cell"}}};
  std::vector<TableCell> row{{.text = "scale b 32, N 2"}};
  for (int i = 0; i < 20; ++i) {
    table.columns.push_back({.key = "c", .label = fmt::format("figure{}", i), .format = Format::rate});
    row.push_back({.value = 1234.5, .low = 1200, .high = 1300});
  }
  table.rows.assign(3, row);
  const auto text = files_of(document_of(table)).at("wide");
  const auto parts = count_of(text, "\\begin{table}");
  EXPECT_GE(parts, 3u);
  EXPECT_EQ(count_of(text, "scale b 32, N 2 &"), 3 * parts);
  EXPECT_EQ(count_of(text, "{[}1,200, 1,300]"), 60u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(count_of(text, fmt::format("figure{} ", i)), 1u) << i;
}

TEST(Latex, DividesALongTableByRows) {
  Table table{
      .id = "long", .title = "Long", .columns = {{.key = "n", .label = "n", .format = Format::integer}}};
  for (int i = 0; i < 100; ++i) table.rows.push_back({{.value = i}});
  const auto text = files_of(document_of(table)).at("long");
  EXPECT_EQ(count_of(text, "\\begin{table}"), 3u);
  EXPECT_THAT(text, HasSubstr("(part 3 of 3)"));
  EXPECT_EQ(count_of(text, "\\label{tab:long}"), 1u);
}

// A study's report has the same tables in every format.
TEST(Latex, HasEveryTableThatCsvHas) {
  const auto document = build(study());
  const auto files = files_of(document);
  for (const auto& file : csv_files(document))
    if (file.is_table && !file.name.starts_with("timeline")) {
      EXPECT_TRUE(files.contains(file.name)) << file.name;
    }
  for (const auto& [name, text] : files)
    if (name != "tables") {
      EXPECT_THAT(files.at("tables"), HasSubstr("\\input{" + name + "}"));
      EXPECT_THAT(text, HasSubstr("\\label{tab:" + name + "}"));
    }
}

TEST(Latex, GivesBlocksOfOneIdTwoFiles) {
  auto document = everywhere("x");
  document.sections[0].blocks.push_back(document.sections[0].blocks[0]);
  std::vector<std::string> names;
  for (const auto& file : latex_files(document)) names.push_back(file.name);
  EXPECT_THAT(names, ElementsAre("odd", "odd-2", "tables"));
}

TEST(Latex, CompilesWherePdflatexIsInstalled) {
  if (std::system("command -v pdflatex >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "pdflatex is not installed (texlive-latex-recommended), so nothing was compiled";
  auto document = build(study());
  std::string every_letter;
  for (char letter = ' '; letter <= '~'; ++letter) every_letter += letter;
  auto odd =
      everywhere(every_letter + " †‡≈≠≤≥→←∞−✓✗⁻±×÷·°²³µμαβσΔ–—‘’“”… éÿÐ中 \x1b \xff " + std::string(60, 'w'));
  document.sections.push_back(odd.sections[0]);
  document.warnings.push_back(every_letter);
  for (const auto& sample : sample_document().sections) document.sections.push_back(sample);
  const auto folder = fs::temp_directory_path() / fmt::format("paceline-latex-{}", ::getpid());
  for (const auto& file : latex_files(document)) base::write_file(folder / (file.name + ".tex"), file.text);
  const auto line =
      fmt::format("cd '{}' && pdflatex -interaction=nonstopmode -halt-on-error tables.tex > out.txt 2>&1",
                  folder.string());
  EXPECT_EQ(std::system(line.c_str()), 0) << base::read_file(folder / "out.txt");
  EXPECT_TRUE(fs::exists(folder / "tables.pdf"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace paceline::report
