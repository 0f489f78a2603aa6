/// Records of others: what they say is shown and never obeyed, by a terminal, a Markdown reader or a
/// spreadsheet.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "golden/records.h"
#include "program.h"

namespace paceline::cli {
namespace {

using golden::make_record;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTitle = "\x1b]0;owned\x07";
constexpr const char* kScript = "<script>alert(1)</script>";
constexpr const char* kImage = "![x](https://example.org/x.png)";
constexpr const char* kFormula = "=HYPERLINK(\"https://example.org\")";

/// Hostile wherever a record holds words.
measure::Record hostile(measure::Record record) {
  const auto text = [](const char* front) {
    return std::string(front) + kTitle + kScript + kImage +
           "\u202e\x9b"
           "2J|\n# x";
  };
  record.model.name = text("=cmd|");
  record.data.spec = record.data.name = record.data.description = text("@SUM(A1)");
  record.command = text("paceline train ");
  record.environment.host = text(kFormula);
  record.environment.cpu = text("+cpu");
  record.environment.os = text("-os");
  record.environment.libraries = {text("lib")};
  record.environment.version = text("v");
  record.device = text("=device");
  record.settings["model"] = text("=model");
  record.settings[text("=key")] = text("=value");
  record.notes = {text("=note"), text("the run ")};
  record.reason = text("reason");
  for (auto& rank : record.ranks) rank.host = text("=host");
  return record;
}

bool is_tame(const std::string& text) {
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if ((byte < 0x20 && letter != '\n') || byte == 0x7f) return false;
  }
  return text.find("\u202e") == std::string::npos && text.find("\xc2\x9b") == std::string::npos;
}

class Hostile : public testing::Test {
 protected:
  Hostile() {
    (void)folder_.write("a/record.json", to_json(hostile(make_record({}))));
    (void)folder_.write("a/two.json", to_json(hostile(make_record({.workers = 2, .forward = 0.45}))));
    (void)folder_.write("b/record.json", to_json(hostile(make_record({.forward = 0.3}))));
  }
  Outcome run(const std::vector<std::string>& words) {
    auto outcome = run_program(words, {.directory = folder_.path()});
    EXPECT_TRUE(is_tame(outcome.out)) << outcome.out;
    EXPECT_TRUE(is_tame(outcome.err)) << outcome.err;
    return outcome;
  }
  /// Without blocks of code, in which nothing is obeyed; no line of a record can end one.
  static std::string without_code(const std::string& markdown) {
    std::istringstream lines(markdown);
    std::string text, line;
    for (bool is_code = false; std::getline(lines, line);) {
      if (line.starts_with("```"))
        is_code = !is_code;
      else if (!is_code)
        text += line + '\n';
    }
    return text;
  }
  void expect_tame_markdown(const std::string& name) {
    const auto text = base::read_file(folder_.path() / name);
    EXPECT_TRUE(is_tame(text)) << text;
    EXPECT_THAT(without_code(text), Not(HasSubstr("<script")));
    EXPECT_THAT(without_code(text), Not(HasSubstr("](http")));
  }
  void expect_tame_csv(const std::string& directory) {
    int files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path() / directory)) {
      if (entry.path().extension() != ".csv") continue;
      ++files;
      const auto text = base::read_file(entry.path());
      EXPECT_TRUE(is_tame(text)) << text;
      for (const char* cell : {"\n=", ",=", "\"=", ",@", "\n@", ",+", "\n+", "\"+", "\"@"})
        EXPECT_THAT(text, Not(HasSubstr(cell))) << entry.path();
    }
    EXPECT_GT(files, 0);
  }
  const Folder folder_;
};

TEST_F(Hostile, RecordsAreTameInAReport) {
  const auto outcome = run({"report", "a", "--markdown", "a.md", "--csv", "csv"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(run({"report", "a"}).out, HasSubstr("\\x1b]0;owned"));
  expect_tame_markdown("a.md");
  EXPECT_THAT(base::read_file(folder_.path() / "a.md"), HasSubstr("&lt;script"))
      << "what the record says is shown";
  expect_tame_csv("csv");
}

TEST_F(Hostile, RecordsAreTameInAnExplanation) { EXPECT_EQ(run({"explain", "a"}).code, 0); }

TEST_F(Hostile, RecordsAreTameInAComparison) {
  EXPECT_EQ(run({"compare", "a", "b", "--markdown", "c.md", "--csv", "c"}).code, 0);
  expect_tame_markdown("c.md");
  expect_tame_csv("c");
}

TEST_F(Hostile, RecordsAndEventsAreTameInAListOfRuns) {
  const std::string words = "\\u001b]0;owned\\u0007<b>";
  (void)folder_.write("runs/r/events.jsonl",
                      "{\"event\":\"start\",\"at\":1,\"kind\":\"train\",\"model\":\"" + words +
                          "\",\"data\":\"" + words + "\",\"command\":\"" + words + "\",\"host\":\"" + words +
                          "\"}\n" + "{\"event\":\"end\",\"at\":2,\"status\":\"failed\",\"reason\":\"" +
                          words + "\"}\n");
  (void)folder_.write("runs/s/record.json", to_json(hostile(make_record({.kind = "train"}))));
  const auto list = run({"runs", "list", "runs"});
  EXPECT_EQ(list.code, 0);
  const auto shown = run({"runs", "show", "runs/r"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.out, HasSubstr("\\x1b]0;owned"));
  EXPECT_EQ(run({"runs", "show", "runs/s"}).code, 0);
}

TEST_F(Hostile, ErrorsAreTame) {
  (void)folder_.write("bad/record.json",
                      std::string("{\"schema\": \"paceline-record-1\", \"") + kTitle + "\": 1}");
  EXPECT_EQ(run({"report", "bad"}).code, 3);
  EXPECT_EQ(run({"report", std::string("no") + kTitle}).code, 3);
}

}  // namespace
}  // namespace paceline::cli
