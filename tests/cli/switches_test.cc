/// docs/switches.md is made from the table of options; PACELINE_UPDATE_DOCS=1 writes it anew.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "cli/options/options.h"

namespace paceline::cli {
namespace {

constexpr const char* kBegin = "<!-- made from the table in src/cli: PACELINE_UPDATE_DOCS=1 test_cli -->\n";

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
