#include <fmt/format.h>

#include <string>

#include "base/file.h"
#include "cli/reports.h"
#include "cluster/child.h"
#include "cluster/launch_line.h"

// Figures as files. SVG is ours; PDF, which pdflatex wants, is made by a program of Debian where it is there.

namespace paceline::cli {

std::vector<std::string> write_figures(const report::Document& document,
                                       const std::filesystem::path& directory) {
  const auto figures = report::svg_figures(document);
  constexpr const char* kConverter = "rsvg-convert";
  const bool has_converter = !cluster::in_path(kConverter).empty();
  std::size_t pdfs = 0;
  for (const auto& file : figures.files) {
    const auto path = (directory / file.name).string();
    base::write_file(path + ".svg", file.text);
    // Some 50 ms. A converter that fails says why itself.
    if (has_converter &&
        cluster::run_in_shell(cluster::shell_line({kConverter, "--format=pdf", "--output=" + path + ".pdf",
                                                   "--", path + ".svg"}))
                .code == 0)
      ++pdfs;
  }
  std::vector<std::string> lines{
      fmt::format("figures:  {} ({} SVG, {} PDF)", directory.string(), figures.files.size(), pdfs)};
  if (!figures.files.empty() && !has_converter)
    lines.push_back(fmt::format("          install librsvg2-bin for PDFs beside them: {} is not on the PATH",
                                kConverter));
  for (const auto& sentence : figures.without) lines.push_back("          " + sentence);
  return lines;
}

}  // namespace paceline::cli
