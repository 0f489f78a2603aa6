#include "comm/emulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "base/error.h"
#include "comm/make.h"

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// Runs `body` on two ranks around which `emulation` lies.
void on_two(const Emulation& emulation, const std::function<void(Communicator&)>& body) {
  auto communicators = emulate(make_local(2), emulation);
  std::thread other([&] { body(*communicators[1]); });
  body(*communicators[0]);
  other.join();
}

TEST(EmulatedLink, TakesTheTimeOfItsFormulaAndChangesNoResult) {
  // 400,000 bytes over 2 ranks: 2 x 50 ms + 400 kB / 2 MB/s = 300 ms. A thread may be woken late.
  const EmulatedLink link{.latency_s = 0.05, .bytes_per_s = 2e6};
  EXPECT_DOUBLE_EQ(link_seconds(link, 2, 400'000), 0.3);
  EXPECT_DOUBLE_EQ(link_seconds(link, 1, 400'000), 0);
  on_two({.link = link, .straggler = {}}, [](Communicator& comm) {
    std::vector<float> values(100'000, static_cast<float>(comm.rank() + 1));
    comm.barrier();
    const auto pending = comm.all_reduce(values);
    pending->wait();
    const auto timing = pending->timing();
    const double seconds = base::seconds(timing.done - timing.posted);
    EXPECT_GE(seconds, 0.3);
    EXPECT_LE(seconds, 0.4);
    EXPECT_EQ(values, std::vector<float>(100'000, 3.0f));
    EXPECT_THAT(comm.name(), HasSubstr("EMULATED link of 50000 us, 0.002 GB/s"));
  });
}

TEST(EmulatedLink, IsNotTakenForRanksThatHang) {
  std::atomic<int> said{0};
  LocalOptions options;
  options.stall_options = {.held_up = milliseconds(1500), .say = [&](const std::string&) { ++said; }};
  const EmulatedLink link{.latency_s = 1.25};
  auto communicators = emulate(make_local(2, options), {.link = link, .straggler = {}});
  const auto body = [&](int rank) {
    std::vector<float> values(10);
    communicators[static_cast<std::size_t>(rank)]->all_reduce(values)->wait();
  };
  std::thread other([&] { body(1); });
  body(0);
  other.join();
  EXPECT_EQ(said, 0) << "both sleep for 2.5 s";
}

TEST(EmulatedLink, BetweenHostsCountsHosts) {
  auto link = parse_link("latency=50ms,between=hosts");
  EXPECT_TRUE(link.between_hosts);
  EXPECT_FALSE(parse_link("latency=10ms,between=ranks").between_hosts);
  EXPECT_THROW((void)parse_link("latency=10ms,between=friends"), base::Error);
  for (const int hosts : {1, 3}) {
    on_two({.link = link, .straggler = {}, .hosts = hosts}, [&](Communicator& comm) {
      std::vector<float> values(10);
      const auto pending = comm.all_reduce(values);
      pending->wait();
      const double expected = 2 * (hosts - 1) * 0.05;
      const double seconds = base::seconds(pending->timing().done - pending->timing().posted);
      EXPECT_GE(seconds, expected);
      EXPECT_LT(seconds, expected + 2 * 0.05);  // a host more
      EXPECT_THAT(comm.name(), HasSubstr(hosts == 1 ? "between 1 host of" : "between 3 hosts of"));
    });
  }
}

TEST(EmulatedLink, CarriesOneAfterTheOtherInWhateverOrderTheyAreWaitedFor) {
  on_two({.link = EmulatedLink{.latency_s = 0.01}, .straggler = {}}, [](Communicator& comm) {
    std::vector<float> a(10), b(10), c(10);
    const auto begin = base::Clock::now();
    auto first = comm.all_reduce(a), second = comm.all_reduce(b), third = comm.all_reduce(c);
    third->wait();
    EXPECT_GE(base::seconds_since(begin), 0.06);  // three times 2 x 10 ms
    EXPECT_TRUE(first->complete() && second->complete());
    first->wait();
    second->wait();
    EXPECT_LE(first->timing().done, second->timing().done);
    EXPECT_LE(second->timing().done, third->timing().done);
  });
}

TEST(EmulatedLink, OfTwoLevelsAddsHostsAndInside) {
  const auto link =
      parse_link("latency=1ms,bandwidth=1GB/s,per-host=4,inside-latency=10us,inside-bandwidth=10GB/s");
  // 4 ranks are one host: 2 x 3 hops and 2 x 3/4 of the bytes inside.
  EXPECT_DOUBLE_EQ(link_seconds(link, 4, 1'000'000), 6 * 10e-6 + 1.5e6 / 10e9);
  // 16 ranks are four hosts, whose links carry each byte for all of a host.
  EXPECT_DOUBLE_EQ(link_seconds(link, 16, 1'000'000), 6 * 10e-6 + 1.5e6 / 10e9 + 6 * 1e-3 + 1.5e6 / 1e9);
  // Two ranks are half a host.
  EXPECT_DOUBLE_EQ(link_seconds(link, 2, 1'000'000), 2 * 10e-6 + 1e6 / 10e9);
  EXPECT_THAT(emulate(make_local(1), {.link = link, .straggler = {}}).front()->name(),
              HasSubstr("link between hosts of 4 ranks of 1000 us, 1 GB/s, inside them of 10 us, 10 GB/s"));
}

TEST(EmulatedLink, IsSlowerBeyondAnOversubscribedSwitch) {
  const auto link = parse_link("latency=1ms,bandwidth=1GB/s,per-switch=4,oversubscription=2.5");
  EXPECT_DOUBLE_EQ(link_seconds(link, 4, 1'000'000), 6e-3 + 1.5e-3);
  EXPECT_DOUBLE_EQ(link_seconds(link, 5, 1'000'000), 8e-3 + 1.6e-3 * 2.5);
  EXPECT_THAT(emulate(make_local(1), {.link = link, .straggler = {}}).front()->name(),
              HasSubstr("1 GB/s, oversubscribed 2.5 times beyond a switch of 4"));
}

TEST(EmulatedLink, HidesSumsFromTheLastPostingOn) {
  // One rank posts 100 ms after the other; the link takes 2 x 100 ms from then on, whatever the sum took.
  const Emulation hiding{.link = EmulatedLink{.latency_s = 0.1}, .straggler = {}, .hides_sums = true};
  std::array<base::TimePoint, 2> posted, done;
  on_two(hiding, [&](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    std::vector<float> values(2'000'000, static_cast<float>(rank + 1));
    comm.barrier();
    if (rank == 1) std::this_thread::sleep_for(milliseconds(100));
    posted[rank] = base::Clock::now();
    const auto pending = comm.all_reduce(values);
    pending->wait();
    done[rank] = pending->timing().done;
    EXPECT_EQ(values.back(), 3.0f);
  });
  EXPECT_EQ(done[0], done[1]) << "one link has one time";
  const double seconds = base::seconds(done[0] - std::max(posted[0], posted[1]));
  EXPECT_GE(seconds, 0.2);
  EXPECT_LE(seconds, 0.3);  // a thread may lose its core between the clock and the posting
}

TEST(EmulatedStraggler, TakesLongerForItsOwnWorkAndTheOthersWait) {
  std::atomic<double> work_s = 0;  // the straggler's own
  on_two({.link = {}, .straggler = EmulatedStraggler{.rank = 1, .slower = 3}}, [&](Communicator& comm) {
    comm.barrier();
    const auto begin = base::Clock::now();
    std::this_thread::sleep_for(milliseconds(100));
    if (comm.rank() == 1) work_s = base::seconds_since(begin);
    comm.barrier();
    // Either rank may be woken late; the straggler's work lasts as long as it lasts, three times.
    EXPECT_GE(base::seconds_since(begin), 3 * work_s - 0.05);
    EXPECT_LE(base::seconds_since(begin), 3 * work_s + 0.1);
  });
}

TEST(Emulate, ReadsWhatIsWrittenAndSaysWhatIsWrong) {
  const auto link = parse_link("latency=50us,bandwidth=1GB/s");
  EXPECT_DOUBLE_EQ(link.latency_s, 50e-6);
  EXPECT_DOUBLE_EQ(link.bytes_per_s, 1e9);
  EXPECT_DOUBLE_EQ(parse_link("bandwidth=10Gbit/s").bytes_per_s, 1.25e9);
  const auto straggler = parse_straggler("rank=3,slower=1.3x");
  EXPECT_EQ(straggler.rank, 3);
  EXPECT_DOUBLE_EQ(straggler.slower, 1.3);
  for (const char* wrong : {"",
                            "latency=50",
                            "bandwidth=1",
                            "speed=1GB/s",
                            "latency",
                            "latency=-1us",
                            "latency=infs",
                            "latency=1e300s",
                            "bandwidth=nanGB/s",
                            "bandwidth=0GB/s",
                            "latency=1us,bandwidth=0GB/s",
                            "latency=1us,per-host=0",
                            "latency=1us,per-host=1.5",
                            "latency=1us,per-host=2,between=hosts",
                            "latency=1us,inside-latency=1us",
                            "per-host=2,inside-latency=1us",
                            "bandwidth=1GB/s,per-switch=4",
                            "bandwidth=1GB/s,oversubscription=2",
                            "bandwidth=1GB/s,per-switch=4,oversubscription=0.5",
                            "latency=1us,per-switch=4,oversubscription=2"})
    EXPECT_THROW((void)parse_link(wrong), base::Error) << wrong;
  for (const char* wrong : {"", "rank=1", "slower=2", "rank=1,slower=0.5", "rank=x,slower=2",
                            "rank=1.5,slower=2", "rank=1,slower=inf"})
    EXPECT_THROW((void)parse_straggler(wrong), base::Error) << wrong;
}

TEST(Emulate, NothingAskedForChangesNothing) {
  auto communicators = emulate(make_local(1), {});
  EXPECT_EQ(communicators[0]->name(), "local");
}

TEST(Emulated, NamesNoStragglerThatIsNotThere) {
  const Emulation of_two{.link = {}, .straggler = EmulatedStraggler{.rank = 1, .slower = 2}};
  const Emulation of_four{.link = {}, .straggler = EmulatedStraggler{.rank = 3, .slower = 2}};
  EXPECT_NE(emulate(make_local(2), of_two).front()->name().find("EMULATED"), std::string::npos);
  EXPECT_EQ(emulate(make_local(2), of_four).front()->name().find("EMULATED"), std::string::npos);
}

}  // namespace
}  // namespace paceline::comm
