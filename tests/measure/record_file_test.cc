#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "measure/record_file.h"

namespace paceline::measure {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string refusal(const fs::path& file) {
  try {
    require_output(file, "--html");
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::data);
    return error.what();
  }
  return "";
}

TEST(OutputFile, WhatIsReadIsNotWrittenOver) {
  const fs::path folder = fs::path(testing::TempDir()) / "paceline_output_file";
  fs::remove_all(folder);
  using std::string_literals::operator""s;
  const struct {
    const char* name;
    std::string bytes, says;  ///< "": it may be written over
  } files[] = {
      {"record.json", "{\n \"schema\": \"paceline-record-1\"}", "is a run's record, and would be lost"},
      {"copy", "{\"schema\":\"paceline-record-1\"}", "is a run's record"},
      {"checkpoint-00000002.safetensors", "", "is a checkpoint or a model's weights"},
      {"recipe.toml", "lr = 0.1\n", "is a recipe or a model file"},
      {"events.jsonl", "{}\n", "is a run's events"},
      {"data_batch_1.bin", "\0\1\2"s, "is a binary file"},
      {"report.html", "<!doctype html>", ""},
      {"report.json", "{\"schema\": \"paceline-report-2\"}", ""},
      {"notes.md", "", ""},
  };
  for (const auto& file : files) {
    base::write_file(folder / file.name, file.bytes);
    const auto said = refusal(folder / file.name);
    EXPECT_THAT(said, HasSubstr(file.says)) << file.name;
    EXPECT_EQ(said.empty(), file.says.empty()) << file.name << ": " << said;
    if (!said.empty()) {
      EXPECT_THAT(said, testing::StartsWith("--html " + (folder / file.name).string()));
    }
  }
  EXPECT_EQ(refusal(folder / "new.html"), "");
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal("/dev/null"), "");
  EXPECT_THAT(refusal(folder / "tpyo/new.html"), HasSubstr("there is no directory"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace paceline::measure
