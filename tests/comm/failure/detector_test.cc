// The detector by itself, over real sockets: the ends of connections, silence, waiting, and what all are
// told. Where a process must do what no detector does (end without a word, say nothing more), the test speaks
// its lines.

#include "comm/failure/detector.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/failure/probes.h"
#include "comm/line_socket.h"

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr milliseconds kPatience{20'000};  ///< for what comes within a second on a machine that is not busy

/// What the detectors of a test have called back.
class Heard {
 public:
  [[nodiscard]] FailureDetector::Callbacks callbacks(int process) {
    return {.ranks_of = [](int other) { return fmt::format("rank {}", other); },
            .on_failure =
                [this, process](const Failure& failure) {
                  const std::lock_guard lock(mutex_);
                  failures_.emplace_back(process, failure);
                  changed_.notify_all();
                },
            .warn =
                [this](const std::string& text) {
                  const std::lock_guard lock(mutex_);
                  warnings_.push_back(text);
                  changed_.notify_all();
                }};
  }
  /// Waits until `count` processes know of a failure.
  [[nodiscard]] std::vector<std::pair<int, Failure>> failures(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return failures_.size() >= count; });
    EXPECT_EQ(failures_.size(), count);
    return failures_;
  }
  [[nodiscard]] std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<int, Failure>> failures_;  ///< [process that knows, what]
  std::vector<std::string> warnings_;
};

/// A process that is nothing but its lines.
class Lines {
 public:
  Lines(const Address& first, int process, const std::string& host = "b")
      : socket_(std::make_unique<Socket>(connect_to(first, milliseconds(3000)))) {
    write_line(socket_->get(), fmt::format("hello {} {} {}", first.token, process, host));
  }
  void say(const std::string& line) const { write_line(socket_->get(), line); }
  void beat(const RankStatus& status) const { say("at " + line_of(status)); }
  /// Its next line that begins with `word`; "": none comes.
  [[nodiscard]] std::string heard(std::string_view word) const {
    while (const auto line = read_line(socket_->get(), milliseconds(5000)))
      if (line->starts_with(word)) return *line;
    return "";
  }
  void end() { socket_.reset(); }

 private:
  std::unique_ptr<Socket> socket_;
};

DetectorOptions quick() {
  return {.beat = milliseconds(50), .held_up = milliseconds(300), .connecting = kPatience};
}

/// Until the detector has taken note of a line.
void wait_for_place(const FailureDetector& detector, int process, const char* place) {
  const auto begin = base::Clock::now();
  while (detector.describe(process).find(place) == std::string::npos &&
         base::Clock::now() - begin < kPatience)
    std::this_thread::sleep_for(milliseconds(5));
  EXPECT_THAT(detector.describe(process), HasSubstr(place));
}

/// `count` processes whose detectors are real.
std::vector<std::unique_ptr<FailureDetector>> started(int count, Heard& heard,
                                                      const DetectorOptions& options = quick()) {
  std::vector<std::unique_ptr<FailureDetector>> all;
  all.push_back(std::make_unique<FailureDetector>(count, options));
  std::vector<Address> addresses(static_cast<std::size_t>(count));
  addresses[0] = all[0]->address();
  for (int process = 1; process < count; ++process)
    all.push_back(std::make_unique<FailureDetector>(process, addresses, options));
  for (int process = 0; process < count; ++process)
    all[static_cast<std::size_t>(process)]->start(heard.callbacks(process));
  return all;
}

TEST(FailureDetector, AFarewellIsNoLoss) {
  Heard heard;
  auto options = quick();
  options.held_up = kPatience;  // after their first line they all do nothing
  auto all = started(3, heard, options);
  all[0]->heartbeat().at(7, "backward");
  all[2]->heartbeat().at(7, "forward");
  wait_for_place(*all[0], 2, "rank 2 on host");
  wait_for_place(*all[0], 2, "(last in forward of step 7)");
  wait_for_place(*all[1], 0, "(last in backward of step 7)");
  all[2].reset();
  std::this_thread::sleep_for(milliseconds(200));  // four heartbeats without it
  all[0].reset();
  all[1].reset();
  EXPECT_THAT(heard.failures(0), IsEmpty());
  EXPECT_THAT(heard.warnings(), IsEmpty());
}

TEST(FailureDetector, AnErrorOfOneIsToldToAllAndTheFirstOneStays) {
  Heard heard;
  const auto all = started(3, heard);
  all[2]->fail({.kind = base::ErrorKind::data, .text = "rank 2 gave up: the disk is full"});
  // It waits for the first one's end, as long as it may, and then says whether that has taken note.
  const auto begin = base::Clock::now();
  while (!all[2]->wait_until_heard(milliseconds(50)) && base::Clock::now() - begin < kPatience) {
  }
  EXPECT_TRUE(all[2]->wait_until_heard(milliseconds(0)));
  for (const auto& [process, failure] : heard.failures(2)) {
    EXPECT_NE(process, 2) << "it knows";
    EXPECT_EQ(failure.kind, base::ErrorKind::data);
    EXPECT_EQ(failure.text, "rank 2 gave up: the disk is full");
  }
  EXPECT_TRUE(all[2]->failure_is_own());
  all[1]->fail({.text = "rank 1 gave up: rank 2 did"});
  for (const auto& detector : all) {
    ASSERT_TRUE(detector->failure());
    EXPECT_EQ(detector->failure()->text, "rank 2 gave up: the disk is full");
  }
  EXPECT_FALSE(all[1]->failure_is_own());
}

TEST(FailureDetector, WhoEndsWithoutAWordIsLostAtOnceAndAllAreTold) {
  Heard heard;
  FailureDetector first(4, quick());
  std::vector<Address> addresses(4, first.address());
  FailureDetector other(3, addresses, quick());
  Lines one(first.address(), 1), two(first.address(), 2, "c");
  first.start(heard.callbacks(0));
  other.start(heard.callbacks(3));
  one.beat({.step = 97, .phase = "backward"});
  two.beat({.step = 98, .phase = "forward"});
  wait_for_place(first, 1, "backward");
  wait_for_place(first, 2, "forward");
  one.end();
  two.end();  // of a host that goes all go at once
  for (const auto& [process, failure] : heard.failures(2)) {
    EXPECT_EQ(failure.kind, base::ErrorKind::comm);
    EXPECT_EQ(failure.text,
              "rank 1 on host b (last in backward of step 97), rank 2 on host c (last in forward of step 98) "
              "are lost: their processes ended without reporting an error")
        << process;
    EXPECT_FALSE(failure.of_first());
    EXPECT_TRUE(failure.detection_s) << "since its last heartbeat";
  }
  EXPECT_FALSE(first.failure_is_own());
}

TEST(FailureDetector, WhoIsSilentIsSaidAndThenLost) {
  Heard heard;
  auto options = quick();
  options.silent = milliseconds(600);
  options.held_up = kPatience;  // the first one does nothing either
  options.deadline = kPatience;
  FailureDetector first(2, options);
  first.set_deadline(milliseconds(1400));  // a run's own, which counts
  const Lines stopped(first.address(), 1);
  first.start(heard.callbacks(0));
  stopped.beat({.step = 97, .phase = "backward"});
  const auto failures = heard.failures(1);
  EXPECT_THAT(failures.at(0).second.text,
              "rank 1 on host b (last in backward of step 97) is lost: it has sent no heartbeat for 1 s");
  EXPECT_DOUBLE_EQ(failures.at(0).second.detection_s.value_or(0), 1.4);
  EXPECT_THAT(heard.warnings(),
              ElementsAre(AllOf(HasSubstr("no heartbeat for"), HasSubstr("from rank 1 on host b"),
                                HasSubstr("it counts as lost after 1 s"))));
  EXPECT_THAT(stopped.heard("failed"), HasSubstr("rank 1 on host b")) << "should it be let go on";
}

TEST(FailureDetector, OfThoseThatOthersWaitForTheSilentOnesAreLost) {
  Heard heard;
  auto options = quick();
  options.silent = milliseconds(600);
  options.held_up = options.deadline = kPatience;
  FailureDetector first(4, options);
  const Lines silent(first.address(), 1), too(first.address(), 2, "c"), beats(first.address(), 3);
  first.start(heard.callbacks(0));
  silent.beat({.step = 97, .phase = "backward"});
  too.beat({.step = 97, .phase = "update"});
  wait_for_place(first, 2, "update");
  EXPECT_FALSE(first.silent_among({1, 2, 3})) << "not for so short a time";
  const auto begin = base::Clock::now();
  while (heard.warnings().size() < 2 && base::Clock::now() - begin < kPatience) {
    beats.beat({.step = 97, .phase = "backward"});
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_FALSE(first.silent_among({3}));
  const auto lost = first.silent_among({3, 1, 2});
  ASSERT_TRUE(lost);
  EXPECT_THAT(
      lost->text,
      AllOf(
          HasSubstr("rank 1 on host b (last in backward of step 97) is lost: it has sent no heartbeat for "),
          HasSubstr(" s, nor has rank 2 on host c (last in update of step 97)")));
  EXPECT_THAT(lost->detection_s.value_or(0), AllOf(testing::Ge(0.6), testing::Lt(20.0)));
}

TEST(FailureDetector, WhoKeepsTheOthersWaitingIsSaidOnceByTheRankThatIsLate) {
  Heard heard;
  FailureDetector first(3, quick());
  const Lines waits(first.address(), 1), late(first.address(), 2);
  first.start(heard.callbacks(0));
  first.heartbeat().at(97, "the reduction of gradients");
  first.heartbeat().enters(Channel::reductions);
  const auto begin = base::Clock::now();
  const auto waited = [&] { return std::chrono::duration_cast<milliseconds>(base::Clock::now() - begin); };
  std::size_t later = 0;
  while (waited() < kPatience && later < 20) {
    first.heartbeat().looks(Channel::reductions, false);
    waits.beat(
        {.step = 97, .phase = "backward", .doing = Doing::waits, .waited = waited(), .collectives = 6});
    late.beat({.step = 97, .phase = "waiting for data", .collectives = 5, .rank = 5});
    std::this_thread::sleep_for(milliseconds(20));
    if (!heard.warnings().empty()) ++later;  // said once, not with every heartbeat
  }
  EXPECT_THAT(heard.warnings(),
              ElementsAre(AllOf(HasSubstr("the others have waited"), HasSubstr("for rank 5 on host b"),
                                HasSubstr("(last in waiting for data of step 97)"))));
  EXPECT_THAT(first.describe(2), HasSubstr("rank 2 on host b"));
  EXPECT_THAT(first.describe_late(2), HasSubstr("rank 5 on host b"));
  EXPECT_FALSE(first.failure());
}

TEST(FailureDetector, WithoutTheFirstTheLowestThatIsThereSpeaks) {
  for (const bool one_is_there : {true, false}) {
    Socket listener;
    std::vector<Address> addresses{listen_anywhere(listener), {}, {}};
    std::vector<std::unique_ptr<SurvivorProbe>> probes(3);
    for (std::size_t process = 1; process < 3; ++process) {
      probes[process] = std::make_unique<SurvivorProbe>();
      addresses[process] = probes[process]->address();
    }
    if (!one_is_there) probes[1].reset();
    Heard heard;
    std::vector<std::unique_ptr<FailureDetector>> others;
    std::vector<std::unique_ptr<Socket>> accepted;
    for (int process = one_is_there ? 1 : 2; process < 3; ++process) {
      others.push_back(std::make_unique<FailureDetector>(process, addresses, quick()));
      ASSERT_TRUE(wait_for(listener.get(), POLLIN, kPatience));
      accepted.push_back(std::make_unique<Socket>(::accept(listener.get(), nullptr, nullptr)));
      EXPECT_EQ(read_line(accepted.back()->get(), kPatience),
                fmt::format("hello {} {} {}", addresses[0].token, process, base::host_name()));
      others.back()->start(heard.callbacks(process));
    }
    accepted.clear();  // process 0 ends without a word
    for (const auto& [process, failure] : heard.failures(others.size())) {
      EXPECT_TRUE(failure.of_first());
      EXPECT_EQ(failure.reporter, one_is_there ? 1 : 2) << "of process " << process;
      EXPECT_THAT(failure.text,
                  AllOf(HasSubstr("rank 0 on host"), HasSubstr("ended without reporting an error")));
      if (!one_is_there) {
        EXPECT_THAT(failure.text, HasSubstr("; rank 1 on host"));
      } else {
        EXPECT_THAT(failure.text, Not(HasSubstr("did not answer")));
      }
    }
    for (const auto& other : others) EXPECT_FALSE(other->wait_until_heard(milliseconds(10)));
  }
}

TEST(FailureDetector, StrangersAreNotTakenForProcesses) {
  Heard heard;
  FailureDetector first(2, quick());
  Address wrong = first.address();
  wrong.token ^= 1;
  const Lines stranger(wrong, 1, "stranger"), beyond(first.address(), 2, "beyond"),
      itself(first.address(), 0, "itself"), one(first.address(), 1, "b"), twice(first.address(), 1, "twice");
  first.start(heard.callbacks(0));
  EXPECT_THAT(first.describe(1), HasSubstr("rank 1 on host b "));
  one.say("what no version says");
  one.beat({.step = 7, .phase = "backward"});
  one.say("at nonsense");
  wait_for_place(first, 1, "backward of step 7");
  one.say("failed 3 - rank 1 gave up");
  EXPECT_EQ(one.heard("heard"), "heard");
  EXPECT_EQ(heard.failures(1).at(0).second.text, "rank 1 gave up");
}

TEST(FailureDetector, WhoDoesNotConnectOrCannotBeReachedIsNamed) {
  const auto text_of_error = [](const auto& body) {
    try {
      body();
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::comm);
      return std::string(error.what());
    }
    return std::string("nothing is refused");
  };
  auto options = quick();
  options.connecting = milliseconds(1000);
  FailureDetector first(4, options);
  const Lines two(first.address(), 2);
  Heard heard;
  EXPECT_THAT(text_of_error([&] { first.start(heard.callbacks(0)); }),
              AllOf(HasSubstr("process 1, 3 did not reach process 0 on"), HasSubstr("within 1 s")));
  Socket listener;
  const Address gone = listen_anywhere(listener);
  listener.close();
  EXPECT_THAT(text_of_error([&] {
                const FailureDetector one(1, {gone, {}}, options);
              }),
              AllOf(HasSubstr("process 1 on"), HasSubstr("cannot reach process 0 on"),
                    HasSubstr(fmt::format("port {}", gone.port))));
}

}  // namespace
}  // namespace paceline::comm
