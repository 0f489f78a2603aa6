/// events.jsonl of the real program, and what is made of it.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../serve/client.h"
#include "base/error.h"
#include "base/file.h"
#include "base/topology.h"
#include "cli/reports.h"
#include "cli/screen/screen.h"
#include "measure/events.h"
#include "measure/record.h"
#include "program.h"
#include "serve/http_server.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> training(std::vector<std::string> more) {
  std::vector<std::string> words{
      "train",          "--model", "resnet8-cifar", "--data", "synthetic,train=64,test=32",
      "--global-batch", "16",      "--precision",   "fp32",   "--no-measured-kernels"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<measure::Event> events_of(const fs::path& run) {
  std::vector<measure::Event> events;
  for (const auto& line : measure::EventTail(run / measure::kEventsFile).read())
    if (auto event = measure::event_from_json(line.text)) events.push_back(std::move(*event));
  return events;
}

std::vector<std::string> names_of(const std::vector<measure::Event>& events) {
  std::vector<std::string> names;
  for (const auto& event : events) names.push_back(event.name());
  return names;
}

/// The first event of that name.
const measure::Event& find(const std::vector<measure::Event>& events, const std::string& name) {
  return *std::find_if(events.begin(), events.end(), [&](const auto& event) { return event.name() == name; });
}

TEST(EventsOfTheProgram, OfATrainingAreItsRecordsFiguresAndAResumeAppends) {
  const Folder folder;
  const auto run = folder.path() / "run";
  auto outcome = run_program(training({"--epochs", "2", "--out", run.string()}));
  if (serve::has_http_server()) {
    EXPECT_THAT(outcome.out, HasSubstr("watch: paceline serve " + run.string()));
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  auto events = events_of(run);
  const auto names = names_of(events);
  EXPECT_EQ(names.front(), "start");
  EXPECT_EQ(names.back(), "end");
  EXPECT_EQ(std::count(names.begin(), names.end(), "epoch"), 2);
  EXPECT_EQ(std::count(names.begin(), names.end(), "evaluation"), 2);
  EXPECT_EQ(std::count(names.begin(), names.end(), "checkpoint"), 2);
  EXPECT_THAT(names, Contains("step"));
  EXPECT_EQ(find(events, "start").whole("updates"), 8);
  EXPECT_EQ(find(events, "start").text("schema"), measure::kEventsSchema);
  const auto record = nlohmann::json::parse(base::read_file(run / "record.json"));
  const auto& epoch = record.at("epochs").at(0);
  EXPECT_EQ(find(events, "epoch").number("train_loss"), epoch.at("train_loss").get<double>());
  EXPECT_EQ(find(events, "evaluation").number("test_accuracy"), epoch.at("test_accuracy").get<double>());
  EXPECT_EQ(events.back().text("status"), "complete");
  EXPECT_TRUE(fs::exists(run / find(events, "checkpoint").text("file").value()));

  const auto lines = events.size();
  outcome = run_program(training({"--epochs", "3", "--resume", run.string(), "--out", run.string()}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  events = events_of(run);
  ASSERT_GT(events.size(), lines + 2);
  EXPECT_EQ(events[lines].name(), "start");
  EXPECT_EQ(events[lines + 1].name(), "resume");
  EXPECT_EQ(events[lines + 1].whole("update"), 8);
}

TEST(EventsOfTheProgram, OfManyClassesHaveTheTopFive) {
  const Folder folder;
  const auto run = folder.path() / "run";
  auto words = training({"--epochs", "2", "--out", run.string()});
  *(std::ranges::find(words, "--data") + 1) = "synthetic,train=64,test=32,classes=25";
  const auto trained = run_program(words);
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("  top-5 "));
  const auto events = events_of(run);
  const auto in_training = std::find_if(events.rbegin(), events.rend(), [](const auto& event) {
                             return event.name() == "evaluation";
                           })->number("test_top_5");
  ASSERT_TRUE(in_training.has_value());
  ASSERT_EQ(run_program({"evaluate", run.string(), "--out", (folder.path() / "e").string()}).code, 0);
  EXPECT_EQ(find(events_of(folder.path() / "e"), "evaluation").number("test_top_5"), in_training);
  const auto page = folder.path() / "page.md";
  ASSERT_EQ(run_program({"report", run.string(), "--markdown", page.string()}).code, 0);
  EXPECT_THAT(base::read_file(page), HasSubstr("| test top-5 |"));
}

TEST(EventsOfTheProgram, OfAnEvaluationAreItsFigures) {
  const Folder folder;
  const auto run = folder.path() / "run";
  ASSERT_EQ(run_program(training({"--steps", "2", "--out", run.string()})).code, 0);
  const auto lines = events_of(run).size();
  const auto evaluation = folder.path() / "evaluation";
  const auto outcome = run_program({"evaluate", run.string(), "--out", evaluation.string()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto events = events_of(evaluation);
  EXPECT_THAT(names_of(events), ElementsAre("start", "evaluation", "end"));
  EXPECT_EQ(events[0].text("kind"), "evaluate");
  const auto record = measure::read_record(evaluation / "evaluation.json");
  EXPECT_EQ(events[1].number("test_loss"), record.evaluation->loss);
  EXPECT_EQ(events[1].number("test_accuracy"), static_cast<double>(record.evaluation->correct) / 32);
  EXPECT_EQ(events[2].text("status"), "complete");
  ASSERT_EQ(run_program({"evaluate", run.string(), "--out", run.string()}).code, 0);
  EXPECT_EQ(events_of(run).size(), lines) << "a training's events are its own";
}

TEST(EventsOfTheProgram, AFileThatCannotBeWrittenEndsNoTraining) {
  const Folder folder;
  const auto run = folder.path() / "run";
  fs::create_directories(run);
  fs::create_symlink("/dev/full", run / measure::kEventsFile);
  auto outcome = run_program(training({"--steps", "2", "--out", run.string()}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto first = outcome.err.find("goes on without it");
  EXPECT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("goes on without it", first + 1), std::string::npos);
}

TEST(EventsOfTheProgram, GoOnWhereTheDirectoryWasMoved) {
  const Folder folder;
  const auto path = folder.path() / "run", moved = folder.path() / "moved";
  OutputDirectory directory(path);
  RunLog log(path, nullptr, [&] { return directory.follow(); });
  log.write(measure::Event("start").set("kind", "train"));
  log.write(measure::Event("epoch").set("epoch", 1));
  fs::rename(path, moved);
  log.write(measure::Event("epoch").set("epoch", 2));
  log.write(measure::Event("end"));
  EXPECT_THAT(names_of(events_of(moved)), ElementsAre("start", "epoch"));
  const auto events = events_of(path);
  EXPECT_THAT(names_of(events), ElementsAre("start", "moved", "epoch", "end"));
  EXPECT_THAT(events[1].text("text").value(),
              HasSubstr("the directory was moved while the run writes to it"));
  EXPECT_THROW(const OutputDirectory second(path), base::Error) << "the new one is locked too";
  EXPECT_EQ(directory.follow(), "") << "said once";
  fs::remove_all(path);
  EXPECT_THAT(directory.follow(), HasSubstr("removed"));
  fs::rename(path, folder.path() / "again");
  const OutputDirectory of_another_run(path);
  EXPECT_THROW((void)directory.follow(), base::Error);
}

TEST(EventsOfTheProgram, ATrainingThatFailsSaysWhy) {
  const Folder folder;
  const auto run = folder.path() / "run";
  const auto outcome = run_program(training({"--steps", "20", "--lr", "1e30", "--out", run.string()}));
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  const auto events = events_of(run);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().name(), "end");
  EXPECT_EQ(events.back().text("status"), "failed");
  EXPECT_THAT(events.back().text("reason").value(), HasSubstr("no longer finite"));
}

/// A study of a few cells, once for all tests of it.
class StudyOfTheProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    outcome_ = run_program({"study",
                            "--model",
                            "resnet8-cifar",
                            "--data",
                            "synthetic,train=64,test=32",
                            "--precision",
                            "fp32",
                            "--no-measured-kernels",
                            "--workers",
                            "1,2",
                            "--batches",
                            "4,8",
                            "--repeats",
                            "1",
                            "--window-steps",
                            "3",
                            "--variants",
                            "linear",
                            "--baseline-batch",
                            "8",
                            "--large-batch",
                            "16",
                            "--epochs",
                            "1",
                            "--out",
                            run().string()});
  }
  static void TearDownTestSuite() { delete folder_; }
  static fs::path run() { return folder_->path() / "study"; }

  static inline const Folder* folder_ = nullptr;
  static inline Outcome outcome_;
};

TEST_F(StudyOfTheProgram, HasAnEventForEachCellAndPart) {
  ASSERT_EQ(outcome_.code, 0) << outcome_.err;
  const auto events = events_of(run());
  const auto names = names_of(events);
  const auto cells = std::distance(fs::directory_iterator(run() / "records"), {});
  EXPECT_EQ(std::count(names.begin(), names.end(), "cell_begun"), cells);
  EXPECT_EQ(std::count(names.begin(), names.end(), "cell_done"), cells);
  EXPECT_EQ(std::count(names.begin(), names.end(), "start"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "end"), 1);
  // Of the repeats that settle a study nobody knows before it: they are cells of their own, in no part.
  std::int64_t repeats = 0;
  for (const auto& entry : fs::directory_iterator(run() / "records"))
    repeats += entry.path().stem().string().find("-spare") != std::string::npos ? 1 : 0;
  EXPECT_GT(repeats, 0);
  EXPECT_EQ(find(events, "start").whole("cells"), cells - repeats);
  EXPECT_EQ(events.back().text("status"), "complete");
  std::vector<std::string> parts;
  for (const auto& event : events) {
    if (event.name() == "part_done") parts.push_back(event.text("part").value());
    if (event.name() == "epoch") {
      EXPECT_THAT(event.text("cell").value(), HasSubstr("converge"));
    }
    if (event.name() != "cell_done" || !event.number("images_per_s")) continue;
    const auto record = measure::read_record(run() / "records" / (event.text("cell").value() + ".json"));
    EXPECT_DOUBLE_EQ(*event.number("images_per_s"),
                     static_cast<double>(record.window.samples) / record.window.wall_s);
  }
  // With one core the sweep's cells are scaling's, and two workers have no core each for the all-reduce
  // alone.
  if (base::usable_cores() > 1)
    EXPECT_THAT(parts, ElementsAre("sweep", "scale", "comm", "converge"));
  else
    EXPECT_THAT(parts, ElementsAre("scale", "converge"));
}

TEST_F(StudyOfTheProgram, IsServedAsItsReportHasItAndFollowed) {
  if (!serve::has_http_server()) GTEST_SKIP() << "built without libcpp-httplib-dev";
  ASSERT_EQ(outcome_.code, 0) << outcome_.err;
  const int port = free_port();
  Program server({"serve", folder_->path().string(), "--port", std::to_string(port)},
                 {.variables = {{"PACELINE_TOKEN", "0123456789"}}});
  ASSERT_TRUE(server.wait_for(fmt::format("http://127.0.0.1:{}/\n", port)));
  const auto answer = [&](const std::string& target) {
    return serve::answer(port, target, "Host: localhost\r\nAuthorization: Bearer 0123456789\r\n");
  };
  // What report.html holds, byte for byte.
  EXPECT_EQ(serve::body_of(answer("/document/study")), base::read_file(run() / "report.json"));
  const auto page = answer("/run/study");
  EXPECT_EQ(serve::status_of(page), 200);
  EXPECT_THAT(page, HasSubstr("<meta name=\"paceline-live\" content=\"/events?run=study&amp;from="));
  EXPECT_THAT(answer("/"), HasSubstr("/run/study"));
  EXPECT_THAT(answer("/metrics"), HasSubstr("paceline_runs{state=\"complete\"} 1"));
  for (const char* target : {"/", "/metrics", "/document/study", "/events?run=study"})
    EXPECT_EQ(serve::status_of(serve::answer(port, target)), 401) << "without the token: " << target;
  serve::Client follower(port);
  follower.get("/events?run=study&token=0123456789");
  EXPECT_THAT(follower.read_until("event: end"), HasSubstr("event: cell_done"));
  server.signal(SIGTERM);
  EXPECT_EQ(server.finish().code, 0);
}

TEST_F(StudyOfTheProgram, IsListedShownAndRemovedWhenAllowed) {
  ASSERT_EQ(outcome_.code, 0) << outcome_.err;
  auto outcome = run_program({"runs", "list", folder_->path().string()});
  EXPECT_THAT(outcome.out, HasSubstr("study  complete"));
  EXPECT_THAT(outcome.out, HasSubstr("cells"));
  outcome = run_program({"runs", "list", "--json", folder_->path().string()});
  const auto listed = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].at("state"), "complete");
  EXPECT_EQ(listed[0].at("cells_done"), listed[0].at("cells"));
  outcome = run_program({"runs", "show", run().string()});
  EXPECT_THAT(outcome.out, HasSubstr("best"));

  const auto copy = folder_->path() / "copies" / "one";
  fs::create_directories(copy.parent_path());
  fs::copy(run(), copy, fs::copy_options::recursive);
  outcome = run_program({"runs", "rm", copy.string()}, {});
  EXPECT_EQ(outcome.code, 2);  // nobody to ask
  EXPECT_THAT(outcome.err, HasSubstr("--yes"));
  EXPECT_TRUE(fs::exists(copy / "records"));
  const int lock = ::open(copy.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  EXPECT_THAT(run_program({"runs", "list", (folder_->path() / "copies").string()}).out, HasSubstr("running"));
  outcome = run_program({"runs", "rm", "--yes", copy.string()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("in progress"));
  EXPECT_TRUE(fs::exists(copy / "records"));
  ::close(lock);
  outcome = run_program({"runs", "rm", "--yes", copy.string()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(fs::exists(copy));
  EXPECT_TRUE(fs::exists(run()));
}

TEST(RunsOfTheProgram, RefusesWhatIsNoRun) {
  const Folder folder;
  folder.write("a/b/notes.txt", "mine");
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"runs"},
                                             {"runs", "lisst"},
                                             {"runs", "rm", "--yes"},
                                             {"runs", "rm", "--yes", folder.path().string()},
                                             {"runs", "rm", "--yes", (folder.path() / "no").string()},
                                             {"serve", (folder.path() / "no").string()},
                                             {"serve", "a", "b"},
                                             {"serve", "--token", "short", folder.path().string()}}) {
    const auto outcome = run_program(words);
    EXPECT_THAT(outcome.code, ::testing::AnyOf(2, 3)) << outcome.err;
    EXPECT_THAT(outcome.err, Not(HasSubstr("bug")));
  }
  EXPECT_TRUE(fs::exists(folder.path() / "a/b/notes.txt"));
  EXPECT_THAT(run_program({"runs", "list", folder.path().string()}).out, HasSubstr("no run below"));
}

TEST(RunsOfTheProgram, TheUmaskDecidesWhoReadsTheirFiles) {
  const Folder folder;
  for (const mode_t mask : {mode_t{077}, mode_t{002}}) {
    const auto name = mask == 077 ? "private" : "ours";
    const auto run = folder.path() / name;
    const mode_t before = ::umask(mask);
    const auto trained = run_program(training({"--epochs", "1", "--out", run.string(), "--tensorboard"}));
    const auto reported =
        run_program({"report", run.string(), "--html", (run / "report.html").string(), "--markdown",
                     (run / "report.md").string(), "--csv", (run / "csv").string()});
    const auto written = run_program({"sbatch", "--script", (run / "job").string(), "--", "train"});
    ::umask(before);
    ASSERT_EQ(trained.code, 0) << trained.err;
    ASSERT_EQ(reported.code, 0) << reported.err;
    ASSERT_EQ(written.code, 0) << written.err;
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(run)) {
      struct stat found {};
      ASSERT_EQ(::stat(entry.path().c_str(), &found), 0);
      const mode_t all = entry.is_directory() ? 0777 : 0666;
      const mode_t owners = entry.path().filename() == "job" ? 0100 : 0;  // a script is started by its owner
      EXPECT_EQ(found.st_mode & 07777, (all & ~mask) | owners) << entry.path();
      ++files;
    }
    EXPECT_GT(files, 8) << "record, checkpoint, events, page, tables, script";
  }
}

}  // namespace
}  // namespace paceline::cli
