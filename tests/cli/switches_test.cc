/// docs/switches.md is made from the table of options; PACELINE_UPDATE_DOCS=1 writes it anew.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "cli/options/options.h"

namespace paceline::cli {
namespace {

constexpr const char* kBegin = "<!-- made from the table of options: PACELINE_UPDATE_DOCS=1 test_cli -->\n";

/// The options of each command with their defaults, as a Markdown table: the body of the page.
std::string options_markdown() {
  std::string text;
  std::string group;
  for (const auto& option : options()) {
    if (option.group != group) {
      group = option.group;
      text += fmt::format("\n### {}\n\n| option | default | what it does | commands |\n|---|---|---|---|\n",
                          group);
    }
    const bool is_negative = option.value.empty() && option.name().starts_with("no-");
    const auto written = is_negative            ? fmt::format("`--{}`", option.name())
                         : option.value.empty() ? fmt::format("`--{0}`, `--no-{0}`", option.name())
                                                : fmt::format("`--{} {}`", option.name(), option.value);
    std::string cell;
    for (const char c : written) cell += c == '|' ? std::string("\\|") : std::string(1, c);
    text += fmt::format("| {} | {} | {} | {} |\n", cell, defaults_of(option), option.help.text(),
                        commands_that_take(option));
  }
  return text;
}

TEST(Switches, ThePageSaysWhatTheTableSays) {
  const auto page = std::filesystem::path(PACELINE_SOURCE_DIR) / "docs/switches.md";
  const auto text = base::read_file(page);
  const auto at = text.find(kBegin);
  ASSERT_NE(at, std::string::npos) << page;
  const auto wanted = text.substr(0, at) + kBegin + options_markdown();
  if (std::getenv("PACELINE_UPDATE_DOCS") != nullptr) std::ofstream(page) << wanted;
  EXPECT_EQ(base::read_file(page), wanted) << "run test_cli with PACELINE_UPDATE_DOCS=1 and commit " << page;
}

}  // namespace
}  // namespace paceline::cli
