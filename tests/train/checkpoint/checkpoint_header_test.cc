// What a checkpoint says of itself: texts of its metadata, read as they were written; formats and sums.

#include "train/checkpoint/checkpoint_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "train/checkpoint/safetensors.h"
#include "train/fixture.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CheckpointHeader : public TrainingTest {
 protected:
  /// A file of these texts, with a few numbers as data.
  [[nodiscard]] SafetensorsFile with(Metadata texts) const {
    write(std::move(texts));
    return SafetensorsFile(path());
  }
  void write(Metadata texts) const {
    const std::vector<float> values{1, 2, 3};
    const Tensor tensor{"fc.bias", base::DType::f32, {3}, std::as_bytes(std::span(values))};
    write_safetensors(path(), std::span(&tensor, 1), texts);
  }
  [[nodiscard]] std::filesystem::path path() const { return directory_ / "c.safetensors"; }
  template <typename Body>
  [[nodiscard]] std::string text_of_error(const Body& body) const {
    try {
      body();
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::data);
      EXPECT_THAT(error.what(), HasSubstr(path().string()));
      return error.what();
    }
    return "nothing is refused";
  }
};

GuardState guard_after(std::int64_t seen) {
  GuardState guard{.seen = seen, .lowest = 0.1 + 0.2, .above = 3, .skipped = 7, .rollbacks = 1};
  for (std::int64_t step = 0; step < seen; ++step)
    guard.losses[static_cast<std::size_t>(step) % GuardState::kWindow] = 2.3 / static_cast<double>(step + 1);
  return guard;
}

/// The ring holds the last 32: of fewer, of as many, and of more, where it does not begin at its front.
TEST_F(CheckpointHeader, WhatIsKnownOfTheLossComesBackToTheLastDigit) {
  for (const std::int64_t seen : {0, 1, 5, 31, 32, 33, 77}) {
    const auto guard = guard_after(seen);
    EXPECT_EQ(guard_in(with(texts_of(guard))), guard) << seen;
  }
  auto extreme = guard_after(2);
  extreme.losses[0] = std::numeric_limits<double>::denorm_min();
  extreme.losses[1] = std::numeric_limits<double>::max();
  EXPECT_EQ(guard_in(with(texts_of(extreme))), extreme);
  EXPECT_EQ(guard_in(with({})), GuardState()) << "of before the key";
}

TEST_F(CheckpointHeader, IsCalledGoodWhereNoLossWasSuspect) {
  auto guard = guard_after(5);
  EXPECT_FALSE(says_it_is_good(with(texts_of(guard)))) << "3 steps above the bound";
  guard.above = 0;
  EXPECT_TRUE(says_it_is_good(with(texts_of(guard))));
  guard.skipped_in_row = 1;
  EXPECT_FALSE(says_it_is_good(with(texts_of(guard))));
  EXPECT_FALSE(says_it_is_good(with({}))) << "of before the key";
}

TEST_F(CheckpointHeader, ListsOfLossesThatAreDamagedAreRefused) {
  const std::string good = texts_of(guard_after(2)).at("loss_guard");
  for (const std::string& text : {good + " 1", good + "x", good.substr(0, good.rfind(' ')), std::string("x"),
                                  "-1" + good.substr(1), std::string(" "), std::string("1 2 3")})
    EXPECT_THAT(text_of_error([&] {
                  (void)guard_in(with({{"loss_guard", text}}));
                }),
                HasSubstr("take an earlier one"))
        << text;
}

TEST_F(CheckpointHeader, WhatValidationDecidedComesBackToTheLastDigit) {
  const ValidationState state{.best_update = 812,
                              .best_epoch = 7,
                              .best_accuracy = 1.0 / 3,
                              .best_loss = 0.1 + 0.2,
                              .last_epoch = 9,
                              .reduced_epoch = 8,
                              .reductions = 2};
  const auto texts = texts_of(state);
  const auto read = validation_in(with(texts));
  EXPECT_EQ(read.best_update, 812);
  EXPECT_EQ(read.best_epoch, 7);
  EXPECT_EQ(read.best_accuracy, 1.0 / 3);
  EXPECT_EQ(read.best_loss, 0.1 + 0.2);
  EXPECT_EQ(read.last_epoch, 9);
  EXPECT_EQ(read.reduced_epoch, 8);
  EXPECT_EQ(read.reductions, 2);
  EXPECT_TRUE(texts_of(ValidationState()).empty());
  EXPECT_EQ(validation_in(with({})).best_update, 0);
  for (const auto& [key, text] : texts) {
    if (key == "best_update") continue;  // without it nothing was decided
    auto damaged = texts;
    damaged.erase(key);
    EXPECT_THAT(text_of_error([&] { (void)validation_in(with(damaged)); }), HasSubstr("'" + key + "'"));
    damaged[key] = text + "x";
    EXPECT_THAT(text_of_error([&] { (void)validation_in(with(damaged)); }), HasSubstr("'" + key + "'"));
  }
}

data::DataIdentity some_data() {
  return {.classes = {"a, b", "\"c\"", "d\\x1b"},
          .format = {.height = 24, .width = 32, .channels = 3},
          .evaluated = {.height = 24, .width = 32, .channels = 3},
          .mean = {0.485f, 0.1f, 1.0f / 3},
          .stddev = {0.229f, 1, 1e-6f},
          .train = {.images = 7, .sha256 = "aa"},
          .validation = {},
          .test = {.images = 2, .sha256 = "bb"}};
}

TEST_F(CheckpointHeader, WhatItsDataWereComesBack) {
  const auto data = some_data();
  const auto texts = texts_of(data);
  const auto read = data_in(with(texts));
  EXPECT_EQ(read.classes, data.classes);
  EXPECT_EQ(read.format, data.format);
  EXPECT_EQ(read.mean, data.mean);
  EXPECT_EQ(read.stddev, data.stddev);
  EXPECT_EQ(read.eval_resize, 0);
  EXPECT_FALSE(texts.contains("eval_resize")) << "where evaluation does not resize";
  auto resized = data;
  resized.eval_resize = 40;
  EXPECT_EQ(data_in(with(texts_of(resized))).eval_resize, 40);
  EXPECT_EQ(read.evaluated, data.format);
  EXPECT_FALSE(texts.contains("eval_image")) << "where evaluation has no size of its own";
  resized.evaluated = {.height = 38, .width = 36, .channels = 3};
  EXPECT_EQ(data_in(with(texts_of(resized))).evaluated, resized.evaluated);
  EXPECT_EQ(read.range, std::nullopt);
  EXPECT_FALSE(texts.contains("range")) << "where no values of 16 bits are scaled";
  resized.range = data::Range{.fixed = std::pair(0, 4095)};
  EXPECT_EQ(data_in(with(texts_of(resized))).range, resized.range);
  EXPECT_EQ(read.train, data.train);
  EXPECT_EQ(read.validation, data.validation);
  EXPECT_EQ(read.test, data.test);
  EXPECT_TRUE(texts_of(data::DataIdentity()).empty());
  EXPECT_TRUE(data_in(with({})).classes.empty()) << "of before the keys";
  const std::pair<const char*, const char*> damages[] = {{"classes", "[1, 2]"},
                                                         {"classes", "[\"a\""},
                                                         {"classes", "[]"},
                                                         {"image", "24x32"},
                                                         {"image", "24x32x"},
                                                         {"mean", "0.1:x"},
                                                         {"std", "1:"},
                                                         {"test_samples", "many"},
                                                         {"eval_resize", "x"},
                                                         {"eval_resize", "31"},
                                                         {"eval_resize", "99999999999"},
                                                         {"eval_image", "36x36x1"},
                                                         {"eval_image", "36"},
                                                         {"range", "4095:0"}};
  for (const auto& [key, text] : damages) {
    auto damaged = texts;
    damaged[key] = text;
    EXPECT_THAT(text_of_error([&] { (void)data_in(with(damaged)); }), HasSubstr(std::string("'") + key + "'"))
        << text;
  }
}

TEST_F(CheckpointHeader, NamesClassesThatAreMissingOrNew) {
  EXPECT_EQ(difference_of_classes({"a", "b"}, {"a", "b"}), "");
  EXPECT_EQ(difference_of_classes({"blue", "red"}, {"a_red", "blue"}), "'red' is missing, 'a_red' is new");
  EXPECT_EQ(difference_of_classes({"a", "b", "c"}, {"a"}), "'b', 'c' are missing");
  EXPECT_EQ(difference_of_classes({"a", "b"}, {"b", "a"}), "they have another order");
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back(std::to_string(i));
  EXPECT_THAT(difference_of_classes({}, many), HasSubstr("'7', and 92 more are new"));
}

TEST_F(CheckpointHeader, SaysHowImagesAreSeen) {
  const auto then = some_data();
  auto now = then;
  EXPECT_EQ(difference_of_format(then, now).now, "");
  now.format = {.height = 64, .width = 64, .channels = 3};
  EXPECT_EQ(difference_of_format(then, now).now, "64x64x3");
  EXPECT_EQ(difference_of_format(then, now).then, "24x32x3");
  now.eval_resize = 73;
  EXPECT_EQ(difference_of_format(then, now).now, "64x64x3, to test resized to 73 and cropped");
  EXPECT_EQ(difference_of_format(then, now).then, "24x32x3, to test as much as fits");
  now.eval_resize = 0;
  now.range = data::Range{};
  EXPECT_EQ(difference_of_format(then, now).now, "64x64x3, of range own");
  EXPECT_EQ(difference_of_format(then, now).then, "24x32x3, of the upper 8 of 16 bits");
  now.range.reset();
  now.stddev = {0.5f, 1, 1};
  EXPECT_EQ(difference_of_format(then, now).now, "64x64x3, of std 0.5:1:1");
}

TEST_F(CheckpointHeader, NumbersAreWholeTexts) {
  EXPECT_EQ(number_in(with({{"update", "9223372036854775807"}}), "update"),
            std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"", "12x", " 12", "1.5", "9223372036854775808"})
    EXPECT_THAT(text_of_error([&] {
                  (void)number_in(with({{"update", text}}), "update");
                }),
                HasSubstr("'update' is missing or not a number"))
        << text;
  EXPECT_EQ(text_in(with({{"model", "small"}}), "model"), "small");
  EXPECT_EQ(text_in(with({}), "model"), "");
}

TEST_F(CheckpointHeader, OtherFormatsAreRefused) {
  for (const char* format : {kCheckpointFormat, kFormatWithoutData, kFormatWithoutSum}) {
    write({{"format", format}});
    EXPECT_EQ(text_in(open_header(path()), "format"), format);
  }
  write({{"format", "pt"}});
  EXPECT_THAT(text_of_error([&] { (void)open_header(path()); }), HasSubstr("its format is 'pt'"));
  write({});
  EXPECT_THAT(text_of_error([&] { (void)open_checkpoint(path()); }), HasSubstr("its format is 'none'"));
}

/// The two formats cannot pass for one another: one asks for a sum, the other has none.
TEST_F(CheckpointHeader, OpensWhatIsAsItWasWritten) {
  const auto damage = [&] {
    auto bytes = base::read_file(path());
    bytes.back() ^= 1;
    base::write_file(path(), std::string_view(bytes));
  };
  const auto refusal_of = [&] { return text_of_error([&] { (void)open_checkpoint(path()); }); };
  write({{"format", kCheckpointFormat}, {std::string(kChecksumKey), ""}});
  EXPECT_TRUE(is_summed(open_checkpoint(path())));
  damage();
  EXPECT_THAT(refusal_of(), HasSubstr("the SHA-256 of its bytes is not the one in its header"));
  EXPECT_EQ(text_in(open_header(path()), "format"), kCheckpointFormat) << "the header alone is looked at";
  for (const char* format : {kCheckpointFormat, kFormatWithoutData}) {
    write({{"format", format}});
    EXPECT_THAT(refusal_of(), HasSubstr("requires a SHA-256 in its header, but there is none"));
  }
  write({{"format", kFormatWithoutSum}});
  EXPECT_FALSE(is_summed(open_checkpoint(path())));
  damage();
  EXPECT_EQ(refusal_of(), "nothing is refused") << "nobody can know";
  write({{"format", kFormatWithoutSum}, {std::string(kChecksumKey), ""}});
  damage();
  EXPECT_THAT(refusal_of(), HasSubstr("SHA-256")) << "a sum that is there is compared";
}

}  // namespace
}  // namespace paceline::train
