#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/file.h"
#include "measure/events.h"

namespace paceline::measure {
namespace {

TEST(Events, AreReadAsTheyWereWritten) {
  Event event("step", 1234.5678);
  event.set("update", std::int64_t{7}).set("loss", 0.25).set("cell", "a \"b\"\n").set("is_best", true);
  event.set("missing", std::optional<double>()).set("broken", std::nan(""));
  const auto line = to_json(event);
  EXPECT_EQ(line,
            R"({"event":"step","at":1234.568,"update":7,"loss":0.25,"cell":"a \"b\"\n","is_best":true})");
  const auto read = event_from_json(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name(), "step");
  EXPECT_DOUBLE_EQ(read->at(), 1234.568);
  EXPECT_EQ(read->whole("update"), 7);
  EXPECT_EQ(read->number("update"), 7.0);
  EXPECT_EQ(read->number("loss"), 0.25);
  EXPECT_EQ(read->text("cell"), "a \"b\" ") << "what is read is shown: a line of text stays one";
  EXPECT_TRUE(read->is_true("is_best"));
  EXPECT_FALSE(read->number("cell"));
  EXPECT_FALSE(read->text("nothing"));
}

TEST(Events, NoLineThatIsNoneIsTakenForOne) {
  for (const char* line : {"", "{", R"({"event":"step","at":1,"loss":0.2)", "[1]", "7", "null",
                           R"({"event":7,"at":1})", R"({"event":"step"})", R"({"event":"step","at":"now"})"})
    EXPECT_FALSE(event_from_json(line)) << line;
  const auto odd = event_from_json(R"({"event":"later","at":1,"list":[1],"object":{},"none":null,"x":2})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->fields().size(), 1u);
}

TEST(Events, ManyFieldsKeepTheirOrder) {
  std::string line = R"({"event":"step","at":1.0)";
  for (int i = 80000; i-- > 0;) line += ",\"k" + std::to_string(i) + "\":1";
  line += "}";
  const auto event = event_from_json(line);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->fields().size(), 80000u);
  EXPECT_TRUE(to_json(*event) == line);
  const auto twice = event_from_json(R"({"event":"step","at":1.0,"a":1,"b":2,"a":3})");
  ASSERT_TRUE(twice);
  EXPECT_EQ(to_json(*twice), R"({"event":"step","at":1.0,"a":3,"b":2})");
  EXPECT_FALSE(event_from_json(line + std::string(std::size_t{1} << 20, ' '))) << "longer than any event";
}

}  // namespace

namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class EventFile : public testing::Test {
 protected:
  EventFile() {
    std::string pattern = (fs::temp_directory_path() / "paceline-events-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    file_ = directory_ / kEventsFile;
  }
  ~EventFile() override { fs::remove_all(directory_); }
  void append(const std::string& text) const { std::ofstream(file_, std::ios::app) << text; }

  fs::path directory_, file_;
  std::vector<std::string> said_;
  std::function<void(const std::string&)> say_ = [this](const std::string& text) { said_.push_back(text); };
};

TEST_F(EventFile, IsAppendedToAndFollowedWhileItGrows) {
  EventTail tail(file_);
  EXPECT_TRUE(tail.read().empty());  // not there yet
  EventLog log(directory_, say_);
  log.write(Event("start"));
  log.write(Event("step"));
  auto lines = tail.read();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[1].text, HasSubstr("\"step\""));
  append("{\"event\":\"st");
  EXPECT_TRUE(tail.read().empty());  // not whole yet
  append("ep\",\"at\":1}\n");
  lines = tail.read();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(event_from_json(lines[0].text));
  EXPECT_EQ(lines[0].end, static_cast<std::int64_t>(fs::file_size(file_)));
  EXPECT_TRUE(said_.empty());
}

TEST_F(EventFile, ARunThatGoesOnLeavesACutLineByItself) {
  append("{\"event\":\"start\",\"at\":1}\n{\"event\":\"step\",\"at\":2,\"lo");
  EventLog(directory_, say_).write(Event("start"));
  std::vector<std::string> names;
  for (const auto& line : EventTail(file_).read())
    if (const auto event = event_from_json(line.text)) names.push_back(event->name());
  EXPECT_THAT(names, ::testing::ElementsAre("start", "start"));
}

TEST_F(EventFile, ATailGoesOnBehindALineAndNowhereElse) {
  append("{\"event\":\"a\",\"at\":1}\n{\"event\":\"b\",\"at\":2}\n");
  const auto first = EventTail(file_).read().front();
  EXPECT_EQ(EventTail(file_, first.end).read().size(), 1u);
  for (const std::int64_t wrong : {std::int64_t{3}, first.end + 1, std::int64_t{-5}, std::int64_t{1} << 40})
    EXPECT_EQ(EventTail(file_, wrong).read().size(), 2u) << wrong;
  EXPECT_EQ(EventTail(file_).read(1).size(), 1u);  // at least one, however long
}

/// A power loss leaves a hole, in which no line ends.
TEST_F(EventFile, ATooLongLineIsPassedOver) {
  append("{\"event\":\"a\",\"at\":1}\n");
  const auto begin = static_cast<std::int64_t>(fs::file_size(file_));
  EventTail tail(file_);
  EXPECT_EQ(tail.read().size(), 1u);
  append(std::string(3 << 20, 'x'));
  fs::resize_file(file_, std::uintmax_t{2} << 30);
  EXPECT_TRUE(tail.read().empty());
  EXPECT_EQ(tail.offset(), begin);
  append("\n{\"event\":\"b\",\"at\":2}\n");
  EventTail other(file_, begin);
  for (auto* const reader : {&tail, &other}) {
    const auto lines = reader->read();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_THAT(lines[0].text, HasSubstr("\"b\""));
    EXPECT_EQ(reader->offset(), static_cast<std::int64_t>(fs::file_size(file_)));
    EXPECT_EQ(reader->damaged_at(), begin);
  }
}

TEST_F(EventFile, OneThatBeginsAnewIsReadFromItsBegin) {
  append("{\"event\":\"a\",\"at\":1}\n{\"event\":\"b\",\"at\":2}\n");
  EventTail tail(file_);
  (void)tail.read();
  fs::remove(file_);
  append("{\"event\":\"c\",\"at\":1}\n");
  const auto lines = tail.read();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0].text, HasSubstr("\"c\""));
}

TEST_F(EventFile, OneThatCannotBeWrittenIsSaidOnceAndEndsNothing) {
  EventLog log(directory_ / "not" / "there", say_);
  log.write(Event("start"));
  log.write(Event("end"));
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_THAT(said_[0], HasSubstr("goes on without it"));
}

TEST_F(EventFile, AFullDiskIsSaidOnceAndWhatWasWholeStays) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{200, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    EventLog log(directory_, say_);
    for (int i = 0; i < 20; ++i) log.write(Event("step").set("update", i));
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(said_.size(), 1u);
  const auto lines = EventTail(file_).read();
  ASSERT_GE(lines.size(), 2u);
  for (const auto& line : lines) EXPECT_TRUE(event_from_json(line.text)) << line.text;
}

TEST_F(EventFile, ALinkIsNotFollowed) {
  const auto other = directory_ / "other";
  std::ofstream(other) << "{\"event\":\"a\",\"at\":1}\n";
  fs::create_symlink(other, file_);
  EXPECT_TRUE(EventTail(file_).read().empty());
  EventLog(directory_, say_).write(Event("start"));
  EXPECT_EQ(said_.size(), 1u);
  EXPECT_EQ(base::read_file(other), "{\"event\":\"a\",\"at\":1}\n");
}

}  // namespace

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
