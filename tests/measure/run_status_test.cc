#include "measure/run_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "measure/events.h"

namespace paceline::measure {
namespace {

RunStatus status_of(const std::vector<std::string>& lines) {
  RunStatus status;
  for (const auto& line : lines) status.take(event_from_json(line).value());
  return status;
}

TEST(RunStatusOfEvents, OfATraining) {
  const std::vector<std::string> begin{
      R"({"event":"start","at":100,"kind":"train","model":"m","host":"h","process":5,"updates":40})",
      R"({"event":"step","at":101,"update":10,"updates":40,"epoch":1,"loss":2.0,"lr":0.1,"images_per_s":50})",
      R"({"event":"epoch","at":102,"epoch":1,"update":20,"train_loss":1.5,"train_accuracy":0.4})",
      R"({"event":"evaluation","at":103,"epoch":1,"update":20,"test_loss":1.4,"test_accuracy":0.5})"};
  auto status = status_of(begin);
  EXPECT_TRUE(status.is_training());
  EXPECT_EQ(status.progress(), 0.5);
  EXPECT_EQ(status.loss, 1.5);
  EXPECT_EQ(status.images_per_s, 50);
  EXPECT_EQ(status.best_accuracy, 0.5);
  EXPECT_EQ(status.last_at, 103);
  EXPECT_FALSE(status.has_ended);
  status.take(*event_from_json(R"({"event":"end","at":104,"status":"interrupted","reason":"as asked"})"));
  EXPECT_TRUE(status.has_ended);
  EXPECT_EQ(status.reason, "as asked");
  // It goes on, and what it had reached stays.
  status.take(*event_from_json(R"({"event":"start","at":200,"kind":"train","updates":40})"));
  status.take(*event_from_json(R"({"event":"resume","at":201,"update":20,"epoch":2})"));
  EXPECT_FALSE(status.has_ended);
  EXPECT_EQ(status.updates_done, 20);
  EXPECT_EQ(status.best_accuracy, 0.5);
  EXPECT_EQ(status.started_at, 200);
}

TEST(RunStatusOfEvents, TheValidationPartDecidesWhereThereIsOne) {
  const auto status =
      status_of({R"({"event":"start","at":1,"kind":"train","updates":4})",
                 R"({"event":"evaluation","at":2,"validation_accuracy":0.6,"test_accuracy":0.9})",
                 R"({"event":"evaluation","at":3,"validation_accuracy":0.5,"test_accuracy":0.95})"});
  EXPECT_EQ(status.best_accuracy, 0.6);
  EXPECT_EQ(status.test_accuracy, 0.95);
}

TEST(RunStatusOfEvents, OfAStudyWhoseBestCellHadACoreForEachThread) {
  auto status = status_of(
      {R"({"event":"start","at":1,"kind":"study","cells":4})", R"({"event":"cell_begun","at":2,"cell":"a"})",
       R"({"event":"cell_done","at":3,"cell":"a","done":1,"images_per_s":100})",
       R"({"event":"cell_done","at":4,"cell":"b","done":2,"images_per_s":300,"oversubscribed":true})",
       R"({"event":"cell_done","at":5,"cell":"c","done":3,"images_per_s":200})",
       R"({"event":"cell_begun","at":6,"cell":"d"})",
       R"({"event":"step","at":7,"cell":"d","update":5,"updates":10,"images_per_s":70})"});
  EXPECT_EQ(status.best_images_per_s, 200);
  EXPECT_EQ(status.best_cell, "c");
  EXPECT_EQ(status.cell, "d");
  EXPECT_DOUBLE_EQ(*status.progress(), 3.5 / 4);
  EXPECT_THAT(status.recent, ::testing::ElementsAre(100, 300, 200, 70));
}

}  // namespace
}  // namespace paceline::measure
