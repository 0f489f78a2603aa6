#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace paceline::base {
namespace {

const std::vector<std::string> kNames{"resnet18", "resnet18-cifar", "mnist-cnn", "momentum", "lr"};

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(nearest_name("resnet-18", kNames), "resnet18");
  EXPECT_EQ(nearest_name("resnet18_cifar", kNames), "resnet18-cifar");
  EXPECT_EQ(nearest_name("mnistcnn", kNames), "mnist-cnn");
  EXPECT_EQ(nearest_name("momnetum", kNames), "momentum");  // two neighbours swapped
  EXPECT_EQ(nearest_name("rl", kNames), "lr");
  EXPECT_EQ(nearest_name("momentum", kNames), "momentum");
}

TEST(Nearest, TakesABeginningForTheNameThatAloneBeginsSo) {
  EXPECT_EQ(nearest_name("mom", kNames), "momentum");
  EXPECT_EQ(nearest_name("res", kNames), std::nullopt);  // two begin so
  EXPECT_EQ(nearest_name("mn", kNames), std::nullopt);   // too short to say anything
}

TEST(Nearest, DoesNotGuessWhenNothingIsClose) {
  EXPECT_EQ(nearest_name("transformer", kNames), std::nullopt);
  EXPECT_EQ(nearest_name("", kNames), std::nullopt);
  EXPECT_EQ(nearest_name("x", {}), std::nullopt);
}

TEST(Text, LeavesOutTheMiddleOfLongWords) {
  EXPECT_EQ(with_short_words("--lr 0.1: one\nline"), "--lr 0.1: one\nline");
  const std::string path(300, 'p');
  EXPECT_EQ(with_short_words("no " + path + " there"), "no " + path + " there");
  const auto text = with_short_words("got '" + std::string(1'000'000, '7') + "'; give a smaller one");
  EXPECT_LT(text.size(), 400u);
  EXPECT_TRUE(text.starts_with("got '777") && text.ends_with("777'; give a smaller one")) << text;
  EXPECT_NE(text.find("[... 999753 more bytes ...]"), std::string::npos) << text;
}

TEST(Text, CountsCodePointsNotBytes) { EXPECT_EQ(display_width("−1 µs"), 5U); }

TEST(Text, CountsOneThingOrSeveral) {
  EXPECT_EQ(counted(0, "worker"), "0 workers");
  EXPECT_EQ(counted(1, "worker"), "1 worker");
  EXPECT_EQ(counted(30, "worker"), "30 workers");
  EXPECT_EQ(counted(1, "class has", "classes have"), "1 class has");
  EXPECT_EQ(counted(2, "class has", "classes have"), "2 classes have");
}

TEST(Text, RoundsEstimatedTimes) {
  EXPECT_EQ(rough_time(0.2), "0 s");
  EXPECT_EQ(rough_time(89), "89 s");
  EXPECT_EQ(rough_time(91), "2 min");
  EXPECT_EQ(rough_time(5399), "90 min");
  EXPECT_EQ(rough_time(5400), "1.5 h");
}

TEST(Text, BreaksLinesBetweenWords) {
  EXPECT_THAT(wrapped("", 10), testing::IsEmpty());
  EXPECT_THAT(wrapped("  one  two\nthree ", 7), testing::ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped("µµ µµ µµ", 5), testing::ElementsAre("µµ µµ", "µµ")) << "columns, not bytes";
  EXPECT_THAT(wrapped("a incomprehensible b", 4), testing::ElementsAre("a", "incomprehensible", "b"));
}

TEST(Nearest, OffersNoOtherThing) {
  const std::vector<std::string> known{"cifar10", "gpus-per-node", "max-steps", "resnet18"};
  for (const char* name : {"cifar100", "ntasks-per-node", "max-epochs", "resnet34"})
    EXPECT_EQ(nearest_name(name, known), std::nullopt) << name;
  EXPECT_EQ(nearest_name("cifar-10", known), "cifar10");
  EXPECT_EQ(nearest_name("gpu-per-nodes", known), "gpus-per-node");
  EXPECT_EQ(nearest_name("max_step", known), "max-steps");
}

TEST(Nearest, SuggestsTheNameOrListsAll) {
  EXPECT_EQ(suggestion("momentun", kNames), "; did you mean 'momentum'?");
  EXPECT_EQ(suggestion("transformer", kNames),
            "; known are resnet18, resnet18-cifar, mnist-cnn, momentum, lr");
}

}  // namespace

namespace {

TEST(Visible, LeavesWordsOfAllLanguages) {
  for (const char* text : {"", "plain words, 12.3 %", "Grüße", "日本語", "🙂", "a | b <c> [d](e)"})
    EXPECT_EQ(visible(text), text);
}

TEST(Visible, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(visible("\x1b[2J\x07"), "\\x1b[2J\\x07");
  EXPECT_EQ(visible("a\x7f\r"), "a\\x7f\\x0d");
  EXPECT_EQ(visible("\u009b2J"), "\\u009b2J") << "CSI in one code point";
  EXPECT_EQ(visible("\u202egnp.exe"), "\\u202egnp.exe");
  EXPECT_EQ(visible(std::string_view("\0", 1)), "\\x00");
}

TEST(Visible, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(visible("\x9b"), "\\x9b");
  EXPECT_EQ(visible("\xc3"), "\\xc3") << "cut short";
  EXPECT_EQ(visible("\xc0\x9b"), "\\xc0\\x9b") << "longer than it need be";
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half a pair";
  EXPECT_EQ(visible("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

TEST(Visible, KeepsLinesWhereTheyAreWanted) {
  EXPECT_EQ(visible("a\n\tb"), "a  b");
  EXPECT_EQ(visible("a\n\tb", true), "a\n\tb");
}

}  // namespace

namespace {

TEST(ShellWord, IsQuotedWhereAShellWouldObeyIt) {
  for (const char* plain : {"resnet18-cifar", "mnist:/data/a,train=10", "~/runs/1", "0.1", "a@b%c+d"})
    EXPECT_EQ(shell_word(plain), plain);
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("x;reboot"), "'x;reboot'");
  EXPECT_EQ(shell_word("$(reboot)"), "'$(reboot)'");
  EXPECT_EQ(shell_word("a|b"), "'a|b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("a~b"), "'a~b'");
  const std::vector<std::string> words{"", "a b", "it's", "x;y", "--out=a b", "\\", "'", "~/c", "line\nend"};
  std::string line;
  for (const auto& word : words) line += shell_word(word) + " ";
  EXPECT_EQ(shell_words(line), words);
}

}  // namespace

namespace {

using testing::ElementsAre;

/// What `call` complains of; "" when it does not.
template <typename Call>
std::string complaint(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(Values, WholeNumbersAreWholeAndInRange) {
  EXPECT_EQ(complaint([] { (void)whole_number("18446744073709551615", 0); }),
            "must be a whole number from 0 to 9223372036854775807, got '18446744073709551615'");
  EXPECT_EQ(whole_number("128", 1), 128);
  EXPECT_EQ(whole_number("0", 0), 0);
  for (const char* bad : {"0", "-4", "1.5", "12x", "", " 3", "1e3"})
    EXPECT_THAT(complaint([&] { (void)whole_number(bad, 1); }),
                testing::AllOf(testing::HasSubstr("whole number of at least 1"), testing::HasSubstr(bad)))
        << bad;
  EXPECT_EQ(complaint([] { (void)whole_number("9", 1, 8); }), "must be a whole number from 1 to 8, got '9'");
}

TEST(Values, DecimalsAreFiniteAndInRange) {
  EXPECT_DOUBLE_EQ(decimal("0.1"), 0.1);
  EXPECT_DOUBLE_EQ(decimal("5e-4"), 5e-4);
  for (const char* bad : {"nan", "inf", "-0.1", "0.1.2", "ten", ""})
    EXPECT_NE(complaint([&] { (void)decimal(bad); }), "") << bad;
  EXPECT_EQ(complaint([] { (void)decimal("0", {.open_below = true}); }), "must be a number above 0, got '0'");
  EXPECT_EQ(complaint([] { (void)decimal("2", {.least = 0, .most = 1}); }),
            "must be a number of at least 0 and at most 1, got '2'");
}

TEST(Text, AreWhatAMemberGivesOfEach) {
  struct Row {
    const char* name;
    [[nodiscard]] std::string doubled() const { return std::string(name) + name; }
  };
  constexpr Row kRows[] = {{"a"}, {"b"}};
  EXPECT_THAT(texts_of(kRows, &Row::name), ElementsAre("a", "b"));
  EXPECT_THAT(texts_of(kRows, &Row::doubled), ElementsAre("aa", "bb"));
  EXPECT_EQ(joined(kRows, "; ", &Row::name), "a; b");
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b", "c"}, ","), "a,b,c");
  EXPECT_EQ(joined(std::vector<std::string>(), ","), "");
  EXPECT_THAT(texts_of(std::vector<const Row*>{&kRows[1]}, &Row::name), ElementsAre("b"));
}

TEST(Values, ListsHaveNoGapsAndNothingTwice) {
  EXPECT_THAT(whole_numbers("1,2, 4", 1, 10), ElementsAre(1, 2, 4));
  EXPECT_THAT(whole_numbers("7", 1, 10), ElementsAre(7));
  for (const char* bad : {"", ",", "1,,2", "1,", ",1", "1;2", "1,2,1", "1,0"})
    EXPECT_NE(complaint([&] { (void)whole_numbers(bad, 1, 10); }), "") << bad;
}

TEST(Values, AnUnknownChoiceNamesAllAndTheNearest) {
  const std::vector<std::string> names{"sgd", "adam", "lars"};
  EXPECT_EQ(one_of("adam", names), 1u);
  EXPECT_EQ(complaint([&] { (void)one_of("adm", names); }),
            "must be one of sgd, adam, lars, got 'adm'; did you mean 'adam'?");
  EXPECT_EQ(complaint([&] { (void)one_of("newton", names); }),
            "must be one of sgd, adam, lars, got 'newton'");
}

TEST(Values, NumbersAreTakenOffTheBeginning) {
  std::string_view text = "12ms";
  EXPECT_EQ(take_number<int>(text), 12);
  EXPECT_EQ(text, "ms");
  for (const std::string_view other : {"", "ms", "+1", " 1", "99999999999999999999"}) {
    text = other;
    EXPECT_EQ(take_number<int>(text), std::nullopt) << other;
    EXPECT_EQ(text, other) << "it stays";
  }
}

TEST(Values, DecimalsReadBackAsTheSame) {
  for (const double value : {0.1, 5e-4, 128.0, 1.0 / 3.0, 1e-8}) EXPECT_EQ(decimal(as_text(value)), value);
}

TEST(Text, BreaksACommandBetweenItsWords) {
  EXPECT_THAT(command_lines("paceline train --model a --lr 0.1", 0),
              ElementsAre("paceline train --model a --lr 0.1"));
  EXPECT_THAT(command_lines("paceline train --model a --lr 0.1", 24),
              ElementsAre("paceline train --model \\", "a --lr 0.1"));
  EXPECT_THAT(command_lines("run --data 'folder:my own photos' --out \"a b\" c\\ d", 16),
              ElementsAre("run --data \\", "'folder:my own photos' \\", "--out \"a b\" \\", "c\\ d"));
  EXPECT_THAT(command_lines("echo 'it'\\''s one'", 5), ElementsAre("echo \\", "'it'\\''s one'"));
}

}  // namespace
}  // namespace paceline::base
