#include "base/program_path.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace paceline::base {
namespace {

TEST(ProgramPath, IsTheFileThatRuns) {
  EXPECT_EQ(program_path(), std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_EQ(program_path("/opt/p/bin/paceline", ""), "/opt/p/bin/paceline");
}

TEST(ProgramPath, OfABundleIsWhatItsLoaderWasStartedFor) {
  EXPECT_EQ(program_path("/b/lib/ld-linux-x86-64.so.2", "/b/bin/paceline"), "/b/bin/paceline");
  EXPECT_EQ(program_path("/b/lib/ld-linux-x86-64.so.2", ""), "/b/lib/ld-linux-x86-64.so.2");
  EXPECT_EQ(program_path("/usr/bin/paceline", "/b/bin/paceline"), "/usr/bin/paceline")
      << "another program inherited the variable";
}

TEST(BuildId, IsWhatTheLinkerWroteIntoTheFile) {
  const auto id = build_id();
  ASSERT_EQ(id.size(), 40u) << id;
  std::string bytes;
  for (std::size_t i = 0; i < id.size(); i += 2)
    bytes += static_cast<char>(std::stoi(id.substr(i, 2), nullptr, 16));
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(all.find(bytes), std::string::npos);
}

}  // namespace
}  // namespace paceline::base
