#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/file.h"
#include "cli/reports.h"
#include "cluster/child.h"

// Figures as files. SVG is ours; PDF, which pdflatex wants, is made by a program of Debian where it is there.

namespace paceline::cli {
namespace {

constexpr const char* kConverter = "rsvg-convert";

/// Writes `pdf`; false if the converter fails, which then has said why. It takes some 50 ms.
bool convert_to_pdf(const std::string& converter, std::string svg, std::string pdf) {
  std::string words[] = {converter, "--format=pdf", "--output=" + std::move(pdf), "--", std::move(svg)};
  char* line[std::size(words) + 1] = {};
  std::ranges::transform(words, line, [](std::string& word) { return word.data(); });
  pid_t child = -1;
  if (::posix_spawn(&child, converter.c_str(), nullptr, nullptr, line, environ) != 0) return false;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::vector<std::string> write_figures(const report::Document& document,
                                       const std::filesystem::path& directory) {
  const auto figures = report::svg_figures(document);
  const auto converter = cluster::in_path(kConverter);
  std::size_t pdfs = 0;
  for (const auto& file : figures.files) {
    const auto svg = directory / (file.name + ".svg");
    base::write_file(svg, file.text);
    if (!converter.empty() &&
        convert_to_pdf(converter, svg.string(), (directory / (file.name + ".pdf")).string()))
      ++pdfs;
  }
  std::vector<std::string> lines{
      fmt::format("figures:  {} ({} SVG, {} PDF)", directory.string(), figures.files.size(), pdfs)};
  if (!figures.files.empty() && converter.empty())
    lines.push_back(fmt::format("          install librsvg2-bin for PDFs beside them: {} is not on the PATH",
                                kConverter));
  for (const auto& sentence : figures.without) lines.push_back("          " + sentence);
  return lines;
}

}  // namespace paceline::cli
