#include "base/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace paceline::base {
namespace {

constexpr Module kNone{.kind = ErrorKind::device,
                       .library = "thing",
                       .file = "paceline_thing.so",
                       .entry = "paceline_open_thing",
                       .built_with = "libthing-dev",
                       .remedy = "install libthing1"};

std::string refusal(const std::filesystem::path& folder) {
  try {
    (void)open_module(kNone, folder);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    return error.what();
  }
  return "opened";
}

std::filesystem::path empty_folder(const char* name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(OpenModule, OneThatIsNotThereSaysWhatToInstallAndHowToBuild) {
  const auto folder = empty_folder("module_absent");
  const auto text = refusal(folder);
  EXPECT_THAT(text,
              testing::StartsWith("thing: " + (folder / "paceline_thing.so").string() + " is not there"));
  EXPECT_THAT(text, testing::HasSubstr("install libthing-dev, then: cmake --preset release && ./x build"));
}

TEST(OpenModule, OneThatDoesNotOpenGivesTheLoadersReasonAndTheRemedy) {
  const auto folder = empty_folder("module_broken");
  std::ofstream(folder / "paceline_thing.so") << "no library";
  const auto text = refusal(folder);
  EXPECT_THAT(text, testing::HasSubstr("cannot be opened"));
  EXPECT_THAT(text, testing::EndsWith("install libthing1"));
}

// In the build, test programs lie in tests/ and modules above it.
TEST(ModulePath, IsAboveTheProgramWhereTheBuildLeavesIt) {
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  EXPECT_EQ(module_path(kNone), beside / "paceline_thing.so");
  const auto above = beside.parent_path() / "paceline_thing.so";
  std::ofstream(above) << "a module";
  EXPECT_EQ(module_path(kNone), above);
  std::filesystem::remove(above);
}

}  // namespace
}  // namespace paceline::base
