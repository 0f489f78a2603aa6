#include "measure/event_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/file.h"
#include "measure/events.h"

namespace paceline::measure {
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
}  // namespace paceline::measure
