/// Choices of init for folders of every size, without files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "base/file.h"
#include "data/files.h"
#include "init/proposal.h"

namespace paceline::init {
namespace {

constexpr const char* kLayers = R"([[layer]]
op = "conv2d"
channels = 4
kernel = 3
[[layer]]
op = "global_average_pool"
[[layer]]
op = "dense"
features = "classes"
)";

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

DataFacts photographs(std::int64_t train, int classes, int side) {
  DataFacts facts{
      .spec = "folder:/d", .has_sizes = true, .format = {.height = 64, .width = 64, .channels = 3}};
  for (int c = 0; c < classes; ++c) {
    facts.class_names.push_back("class " + std::to_string(c));
    facts.per_class.push_back(train / classes);
  }
  facts.train = train;
  facts.test = train / 5;
  facts.looked_at = facts.all();
  facts.short_sides = facts.long_sides = {side};
  facts.kinds = {{"JPEG RGB", facts.all()}};
  return facts;
}

std::string value_of(const Proposal& proposal, const std::string& key) {
  for (const auto& choice : proposal.choices)
    if (choice.key == key) return choice.value;
  return "";
}

TEST(Proposal, GrowsWithTheSetAndTheMachine) {
  const auto small = propose(photographs(1'000, 10, 300), {.cores = 2});
  EXPECT_EQ(small.options.model, "resnet8-cifar");
  EXPECT_EQ(small.options.global_batch, 16);
  const auto large = propose(photographs(30'000, 257, 300), {.cores = 2});
  EXPECT_EQ(large.options.model, "resnet18");
  EXPECT_EQ(large.options.global_batch, 128);
  EXPECT_DOUBLE_EQ(large.options.validation_split, 0.1);
  EXPECT_EQ(large.options.epochs, 20);
  EXPECT_THAT(large.options.data, HasSubstr(",size=64,"));  // two cores: the smallest that shows something
  EXPECT_TRUE(large.is_long);
  const auto many_cores = propose(photographs(30'000, 257, 300), {.cores = 256});
  EXPECT_THAT(many_cores.options.data, HasSubstr(",size=224,"));
  EXPECT_FALSE(many_cores.is_long);
}

TEST(Proposal, EnlargesNoImageAndTakesABatchThatFits) {
  EXPECT_THAT(propose(photographs(1'000, 10, 50), {.cores = 64}).options.data, HasSubstr(",size=48,"));
  EXPECT_THAT(propose(photographs(1'000, 10, 9), {.cores = 64}).options.data, HasSubstr(",size=16,"));
  const auto tight = propose(photographs(30'000, 10, 300), {.cores = 2, .most_batch = 32});
  EXPECT_EQ(tight.options.global_batch, 32);
  EXPECT_THAT(recipe_text(photographs(30'000, 10, 300), tight, "p.toml"),
              HasSubstr("largest batch whose memory"));
  EXPECT_LE(propose(photographs(4, 2, 50), {.cores = 2}).options.global_batch, 4);
}

TEST(Proposal, GoesOnFromGivenWeights) {
  const auto facts = photographs(1'000, 10, 300);
  const GivenModel given{.model = "mobilenet_v2", .weights = "m.safetensors"};
  const auto random = propose(facts, {.cores = 2}, {.model = "mobilenet_v2"}),
             tuned = propose(facts, {.cores = 2}, given);
  EXPECT_EQ(tuned.options.model, "mobilenet_v2");
  EXPECT_EQ(value_of(tuned, "weights"), "\"m.safetensors\"");
  EXPECT_EQ(value_of(random, "weights"), "");
  EXPECT_EQ(tuned.options.epochs, random.options.epochs / 5);
  EXPECT_DOUBLE_EQ(std::stod(value_of(tuned, "lr")), std::stod(value_of(random, "lr")) / 5);
  EXPECT_THAT(recipe_text(facts, tuned, "p.toml"), HasSubstr("the training goes on from them"));
  // Weights are for images of the size with which their model was recorded.
  const data::TemporaryDirectory folder;
  const auto file = (folder.path() / "mine.toml").string();
  for (const int side : {64, 32}) {
    base::write_file(file, fmt::format("image = [3, {0}, {0}]\n{1}", side, kLayers));
    const auto mine = propose(facts, {.cores = 2}, {.model = file, .weights = "m.safetensors"});
    EXPECT_THAT(mine.options.data, HasSubstr(fmt::format(",size={},", side)));
    EXPECT_THAT(recipe_text(facts, mine, "p.toml"), HasSubstr("its weights were made"));
  }
  // A network that divides the side by 32 gets no small images.
  EXPECT_THAT(propose(photographs(1'000, 10, 50), {.cores = 2}, given).options.data, HasSubstr(",size=128,"));
}

TEST(Proposal, MakesUpForUnevenClasses) {
  const auto proposed = [](std::int64_t smallest) {
    auto facts = photographs(1'000, 10, 300);
    facts.per_class.back() = smallest;
    return propose(facts, {.cores = 2});
  };
  for (const auto& [smallest, weights, sampler] : {std::tuple{100, "", ""},
                                                   {26, "", ""},
                                                   {25, "\"balanced\"", ""},
                                                   {6, "\"balanced\"", ""},
                                                   {5, "", "\"balanced\""}}) {
    const auto proposal = proposed(smallest);
    EXPECT_EQ(value_of(proposal, "class-weights"), weights) << smallest;
    EXPECT_EQ(value_of(proposal, "sampler"), sampler) << smallest;
  }
  EXPECT_THAT(recipe_text(photographs(1'000, 10, 300), proposed(20), "p.toml"),
              AllOf(HasSubstr("largest class has 5 times"), HasSubstr("class-weights = \"balanced\"")));
}

TEST(Proposal, HoldsNothingBackWhereNothingCanBeSpared) {
  const auto few = propose(photographs(40, 10, 50), {});
  EXPECT_EQ(few.options.validation_split, 0);
  EXPECT_EQ(value_of(few, "validation-split"), "");
  auto with_validation = photographs(1'000, 10, 50);
  with_validation.validation = 100;
  EXPECT_EQ(propose(with_validation, {}).options.validation_split, 0);
}

TEST(Proposal, MirrorsNothingThatTellsLeftFromRight) {
  auto hands = photographs(1'000, 2, 100);
  hands.class_names = {"Left hand", "Right hand"};
  EXPECT_THAT(propose(hands, {}).options.data, HasSubstr(",flip=0"));
  EXPECT_EQ(propose(photographs(1'000, 2, 100), {}).options.data.find("flip"), std::string::npos);
}

TEST(Proposal, WarnsOfUnevenAndTinyClasses) {
  EXPECT_THAT(propose(photographs(1'000, 10, 100), {}).warnings, IsEmpty());
  auto uneven = photographs(1'000, 2, 100);
  uneven.per_class = {900, 100};
  EXPECT_THAT(propose(uneven, {}).warnings, testing::ElementsAre(HasSubstr("9.0 times")));
  uneven.per_class = {995, 5};
  EXPECT_THAT(propose(uneven, {}).warnings, testing::ElementsAre(HasSubstr("1 class has fewer than 10")));
}

TEST(Proposal, LeavesThePrecisionToAutoAndSaysWhatThatIsHereAndWhy) {
  for (const auto precision : {engine::Precision::f32, engine::Precision::bf16}) {
    const auto proposal = propose(photographs(1'000, 2, 100), {.precision = {precision, "a made-up reason"}});
    EXPECT_EQ(value_of(proposal, "precision"), "\"auto\"");
    EXPECT_THAT(recipe_text(photographs(1'000, 2, 100), proposal, "p.toml"),
                HasSubstr(precision == engine::Precision::bf16 ? "# bf16 here: a made-up reason."
                                                               : "# fp32 here: a made-up reason."));
  }
}

TEST(Proposal, SurvivesNamesOfAnyLetters) {
  auto facts = photographs(1'000, 2, 100);
  facts.spec = "folder:/d \"x\"\\y\n";
  EXPECT_EQ(toml_string(facts.spec), "\"folder:/d \\\"x\\\"\\\\y\\u000a\"");
  facts.broken = {"a\nb.jpg: cut"};
  const auto text = recipe_text(facts, propose(facts, {}), "p.toml");
  EXPECT_THAT(text, AllOf(HasSubstr("a?b.jpg"), testing::Not(HasSubstr("a\nb.jpg"))));
}

}  // namespace
}  // namespace paceline::init
