#include "report/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace paceline::report {

void expect_golden(const std::string& name, const std::string& actual) {
  const auto path = std::filesystem::path(PACELINE_SOURCE_DIR) / "tests" / "golden" / name;
  if (std::getenv("PACELINE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << actual;
    ADD_FAILURE() << "wrote " << path << "; read it, then run again without PACELINE_UPDATE_GOLDEN";
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file)
      << path << " is missing; run this test once with PACELINE_UPDATE_GOLDEN=1 and read what it writes";
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(expected.str(), actual)
      << "the output differs from " << path
      << "; if it is meant to, run this test once with PACELINE_UPDATE_GOLDEN=1 and read what changed";
}

}  // namespace paceline::report
