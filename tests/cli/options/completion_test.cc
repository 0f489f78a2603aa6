#include "cli/options/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "cli/program.h"

namespace paceline::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// What bash offers for `line`, whose last word is being typed.
std::vector<std::string> offered(const std::string& script, const std::vector<std::string>& line) {
  const Folder folder;
  std::string text = "source " + script + "\nCOMP_WORDS=(";
  for (const auto& word : line) text += "'" + word + "' ";
  text += ")\nCOMP_CWORD=" + std::to_string(line.size() - 1) +
          "\n_paceline\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  const auto file = folder.write("ask.bash", text);
  std::FILE* const pipe = ::popen(("bash " + file).c_str(), "r");
  std::vector<std::string> words;
  char word[256];
  while (std::fgets(word, sizeof word, pipe) != nullptr) {
    words.emplace_back(word);
    words.back().pop_back();
  }
  EXPECT_EQ(::pclose(pipe), 0);
  std::erase(words, "");
  return words;
}

TEST(Completion, OfBashKnowsCommandsOptionsAndWords) {
  const auto made = run_program({"completion", "bash"});
  ASSERT_EQ(made.code, 0) << made.err;
  const Folder folder;
  const auto script = folder.write("paceline.bash", made.out);
  EXPECT_EQ(offered(script, {"paceline", "sba"}), std::vector<std::string>{"sbatch"});
  EXPECT_EQ(offered(script, {"paceline", "train", "--placem"}), std::vector<std::string>{"--placement"});
  EXPECT_EQ(offered(script, {"paceline", "train", "--placement", "s"}), std::vector<std::string>{"spread"});
  EXPECT_THAT(
      offered(script, {"paceline", "train", "--"}),
      AllOf(Contains("--no-augment"), Contains("--plan"), Contains("--help"), Not(Contains("--account"))));
  EXPECT_TRUE(offered(script, {"paceline", "train", "--out", ""}).empty()) << "bash then offers files";
  EXPECT_EQ(offered(script, {"paceline", "completion", "z"}), std::vector<std::string>{"zsh"});
  // Behind "--" it is the command that is started.
  EXPECT_EQ(offered(script, {"paceline", "launch", "--hos"}), std::vector<std::string>{"--hosts"});
  EXPECT_EQ(offered(script, {"paceline", "launch", "--processes", "2", "--", "tr"}),
            std::vector<std::string>{"train"});
  EXPECT_EQ(offered(script, {"paceline", "launch", "--processes", "2", "--", "train", "--nest"}),
            std::vector<std::string>{"--nesterov"});
}

TEST(Completion, OfOtherShellsNamesEveryOption) {
  const auto zsh = run_program({"completion", "zsh"}), fish = run_program({"completion", "fish"});
  EXPECT_THAT(zsh.out, ::testing::StartsWith("#compdef paceline\n"));
  for (const auto& option : options()) {
    const std::string name(option.name());
    EXPECT_TRUE(zsh.out.find("--" + name + "[") != std::string::npos ||
                zsh.out.find("--no-" + name + "[") != std::string::npos)
        << name;
    EXPECT_TRUE(fish.out.find(" -l " + name + " ") != std::string::npos ||
                fish.out.find(" -l no-" + name + " ") != std::string::npos)
        << name;
  }
}

TEST(Completion, RefusesAnotherShell) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"completion"}, {"completion", "tcsh"}}) {
    const auto refused = run_program(words);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("bash, zsh, fish"));
  }
}

TEST(Completion, TakesWordsOnlyWhereAllAreSome) {
  const auto words = [](const char* name) { return words_of_value(*find_option(name, kTrain)); };
  EXPECT_EQ(words("gradients-as"), (std::vector<std::string>{"fp32", "bf16"}));
  EXPECT_TRUE(words("model").empty());  // NAME|FILE
  EXPECT_TRUE(words("augment").empty());
}

TEST(ManualPage, HasEveryOptionOnceAndRoffTakesIt) {
  const auto made = run_program({"man"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, ::testing::StartsWith(".TH PACELINE 1 "));
  for (const auto& option : options()) {
    std::string name;
    for (const char letter : option.name())
      name += letter == '-' ? std::string("\\-") : std::string(1, letter);
    EXPECT_THAT(made.out, HasSubstr("\n\\fB\\-\\-" + name + "\\fR")) << name;
  }
  if (std::system("command -v groff >/dev/null") != 0) GTEST_SKIP() << "groff is not there to read the page";
  const Folder folder;
  const auto page = folder.write("paceline.1", made.out);
  const auto line = "test -z \"$(groff -man -ww -z " + page + " 2>&1 | tee " + page + ".said)\"";
  EXPECT_EQ(std::system(line.c_str()), 0) << "groff has warnings";
}

}  // namespace
}  // namespace paceline::cli
