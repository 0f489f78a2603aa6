#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/build.h"
#include "report/sections/evaluated.h"

namespace paceline::report {
namespace {

using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string evaluation_text(const std::vector<Record>& records) {
  return to_terminal(build(records, {.title = "", .command = ""}), 200);
}

TEST(EvaluationSection, ShowsClassesConfusionsAndMistakes) {
  EXPECT_THAT(evaluation_text({evaluated(3)}),
              AllOf(HasSubstr("80.0 % [62.7, 90.5]"),
                    HasSubstr("class0 is taken for class1 most: 2 of 10 images"), HasSubstr("cats/17.png"),
                    HasSubstr("number 4"), HasSubstr("99.0 %"), Not(HasSubstr("Not measured"))));
}

TEST(EvaluationSection, OfManyClassesShowsTheMostFrequentConfusionsInsteadOfAMatrix) {
  EXPECT_THAT(evaluation_text({evaluated(30)}),
              AllOf(HasSubstr("The most frequent confusions"),
                    HasSubstr("Of 30 classes those with the most frequent confusions")));
}

TEST(EvaluationSection, LeavesOutWhatContradictsItself) {
  auto record = evaluated(3);
  record.evaluation->confusion[0][0] = 80;
  EXPECT_THAT(evaluation_text({record}),
              AllOf(HasSubstr("left out, it contradicts itself"), Not(HasSubstr("Accuracy by class"))));
}

}  // namespace

namespace {

using measure::Record;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string search_text(const std::vector<Record>& records) {
  return to_terminal(build(records, {.title = "", .command = ""}), 200);
}

Record training(const std::string& name, const std::vector<double>& accuracies) {
  Record record;
  record.kind = "search";
  record.id = name + std::to_string(accuracies.size());
  record.variant = name;
  record.settings["seed"] = "0";
  record.data.validation_samples = 1000;
  for (const double accuracy : accuracies) {
    const auto number = static_cast<std::int64_t>(record.epochs.size()) + 1;
    measure::EpochRecord epoch{.epoch = number, .updates = 10 * number, .seconds = 1};
    epoch.validation_accuracy = accuracy;
    epoch.validation_loss = 1 - accuracy;
    record.epochs.push_back(epoch);
  }
  return record;
}

TEST(SearchSection, NamesTheBestWhatTiesWithItAndHowOftenTheTestSetWasRead) {
  std::vector<Record> records{training("lr 0.1", {0.80}), training("lr 0.2", {0.79}), training("lr 3", {0.5}),
                              training("lr 0.1", {0.80, 0.95})};
  EXPECT_THAT(search_text(records),
              AllOf(HasSubstr("lr 0.1 is the best on validation: 95.0 % of 1,000 images"),
                    HasSubstr("the difference to lr 0.2 is noise, they tie"),
                    HasSubstr("the test set was not read yet"), HasSubstr("ties, dropped"),
                    HasSubstr("4 epochs were trained in all"), HasSubstr("would have been 6")));
  auto tested = evaluated(3);
  tested.variant = "lr 0.1";
  records.push_back(tested);
  EXPECT_THAT(search_text(records), HasSubstr("which was read once"));
  records.back().evaluation->reads *= 2;
  EXPECT_THAT(search_text(records), HasSubstr("which was read 2 times"));
}

TEST(SearchSection, HasATableForEachModel) {
  std::vector<Record> records{training("lr 0.1", {0.8}), training("lr 0.1", {0.9})};
  records[0].model.name = "mnist-cnn";
  records[1].model.name = "resnet8-cifar";
  EXPECT_THAT(search_text(records),
              AllOf(HasSubstr("mnist-cnn: lr 0.1 is the best on validation: 80.0 %"),
                    HasSubstr("resnet8-cifar: lr 0.1 is the best on validation: 90.0 %")));
}

TEST(SearchSection, MapsBatchByRateAndMarksTies) {
  std::vector<Record> records{training("lr 0.1, local-batch 64", {0.90}),
                              training("lr 0.3, local-batch 64", {0.50}),
                              training("lr 0.1, local-batch 128", {0.70})};
  const auto marks = [&] {
    const Document document = build(records);
    std::vector<std::string> found;
    for (const Section& section : document.sections)
      for (const Block& block : section.blocks)
        if (const auto* map = std::get_if<Heatmap>(&block)) {
          EXPECT_EQ(map->rows, (std::vector<std::string>{"64", "128"}));
          EXPECT_EQ(map->columns, (std::vector<std::string>{"0.1", "0.3"}));
          EXPECT_FALSE(map->cells[3].value) << "128 with 0.3 was not searched";
          for (const auto& cell : map->cells) found.push_back(cell.mark);
        }
    return found;
  };
  EXPECT_THAT(marks(), testing::ElementsAre("best", "", "", ""));
  records[2] = training("lr 0.1, local-batch 128", {0.899});
  EXPECT_THAT(marks(), testing::ElementsAre("tie", "", "tie", ""));
}

TEST(SearchSection, NamesTheErrorOfTheValidationPart) {
  const std::vector<Record> records{training("lr 0.1", {0.95}), training("lr 3", {0.5})};
  EXPECT_THAT(search_text(records),
              AllOf(HasSubstr("validation part's"), Not(HasSubstr("test set's error"))));
}

TEST(SearchSection, SaysWhatFailedAndThatItWasStopped) {
  std::vector<Record> records{training("a", {0.8}), training("b", {}), training("c", {})};
  records[1].status = "failed";
  records[1].reason = "the loss is no longer finite";
  records[2].status = "interrupted";
  EXPECT_THAT(search_text(records),
              AllOf(HasSubstr("b failed: the loss is no longer finite"),
                    HasSubstr("PARTIAL: 1 training stopped"), HasSubstr("nothing ties with it")));
}

}  // namespace
}  // namespace paceline::report
