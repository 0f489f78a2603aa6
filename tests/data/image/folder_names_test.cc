#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../files.h"
#include "data/image/listing.h"

namespace paceline::data {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(FolderNames, OfPartsAreKnownHoweverSpelt) {
  for (const char* name : {"train", "Training", "TRAIN", "training_set", "train-images", "trainset",
                           "TrainImages", "train2017", "train_1", "images_train", "TrainingData"})
    EXPECT_EQ(split_of(name), kTrain) << name;
  for (const char* name : {"val", "valid", "Validation", "validation_set", "val2017", "valset"})
    EXPECT_EQ(split_of(name), kValidation) << name;
  for (const char* name : {"test", "Testing", "test_set", "test1", "TestImages", "dataset_test"})
    EXPECT_EQ(split_of(name), kTest) << name;
  for (const char* name : {"", "trains", "tests", "train_station", "test_tube", "value", "invalid", "contest",
                           "asl_alphabet_train", "train_test", "trainer", "0", "images", "vali", "latest"})
    EXPECT_EQ(split_of(name), std::nullopt) << name;
}

TEST(PartName, HasWhatIsLeftOfTheName) {
  const auto train = part_name("asl_alphabet_train"), test = part_name("ASL-Alphabet-Test");
  ASSERT_TRUE(train && test);
  EXPECT_EQ(train->split, kTrain);
  EXPECT_EQ(test->split, kTest);
  EXPECT_EQ(train->rest, test->rest);
  EXPECT_NE(part_name("seg_train")->rest, part_name("pred_test")->rest);
  EXPECT_FALSE(part_name("train_test_split"));
  EXPECT_FALSE(part_name("cats"));
}

TEST(FolderNames, OfASeriesShareTheirBeginning) {
  for (const auto& [folder, series] :
       std::vector<std::pair<std::string, std::string>>{{"test_1", "test_"},
                                                        {"test12", "test"},
                                                        {"sample_a", "sample_"},
                                                        {"data", ""},
                                                        {"a", ""},
                                                        {"", ""}})
    EXPECT_EQ(series_of(folder), series) << folder;
}

TEST(FolderNames, RepeatedBelowSeveralFoldersAreRefused) {
  const auto refusal = [](const std::vector<std::string>& classes, bool has_parts = false) {
    std::vector<std::string> notes;
    return error_of([&] { check_class_names("folder:d", classes, has_parts, notes); }).text;
  };
  EXPECT_THAT(refusal({"home/cat", "home/dog", "zoo/cat", "zoo/dog", "zoo/emu"}),
              AllOf(HasSubstr("'home' and 'zoo' hold classes of the same names (cat, ...)"),
                    HasSubstr("classes=leaf"), HasSubstr("classes=top"), HasSubstr("train, val and test")));
  EXPECT_THAT(refusal({"home/cat", "zoo/cat"}, true),
              AllOf(HasSubstr("put the classes directly into the parts"), HasSubstr("classes=leaf"),
                    Not(HasSubstr("name parts of the set"))));
  EXPECT_THAT(refusal({"a/cat", "b/cat", "c/cat"}), HasSubstr("'a' and 'b' and 1 more folder hold"));
  EXPECT_THAT(refusal({"cat", "dog", "old/cat"}), HasSubstr("'.' and 'old'"));
  EXPECT_THAT(refusal({"annotations/trimaps", "images"}),
              AllOf(HasSubstr("the folder 'images' would be a class"), HasSubstr("'annotations/trimaps'")));
  EXPECT_EQ(refusal({"cat", "dog"}), "");
  EXPECT_EQ(refusal({"animals/cat", "animals/dog", "plants/oak/old", "plants/oak/young"}), "");
}

TEST(FolderNames, ThatSayLessAreNoted) {
  std::vector<std::string> notes;
  check_class_names("folder:d", {"animals/cat", "animals/other", "plants/oak", "plants/other"}, false, notes);
  EXPECT_THAT(notes, Contains("'animals/other' and 'plants/other' are different classes"));
  notes.clear();
  check_class_names("folder:d", {"dog", "dog/greg"}, false, notes);
  EXPECT_THAT(notes, Contains(HasSubstr("'dog/greg' is a class beside 'dog'")));
  notes.clear();
  check_class_names("folder:d", {"a/x", "b/y"}, false, notes);
  check_class_names("folder:d", {"background", "person"}, false, notes);  // two classes: the task itself
  EXPECT_THAT(notes, IsEmpty());
  check_class_names("folder:d", {"BACKGROUND_Google", "ant", "barrel"}, false, notes);
  check_class_names("folder:d", {"256.toad", "257.clutter", "chess-board"}, false, notes);
  EXPECT_THAT(notes,
              testing::ElementsAre(HasSubstr("'BACKGROUND_Google' is called"), HasSubstr("'257.clutter'")));
}

TEST(FolderNames, AreAlikeUpToCaseAndPlural) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(alike_names({"Cat", "cats", "dog", "glass", "glas", "red fox", "red_fox"}),
            (Pairs{{"Cat", "cats"}, {"red fox", "red_fox"}}));
  EXPECT_EQ(alike_names({"n01440764", "n01443537", "1", "11", "bus", "bu", "A", "s", "as"}), Pairs{});
}

}  // namespace
}  // namespace paceline::data
