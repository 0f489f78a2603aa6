#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

#include "base/error.h"
#include "client.h"
#include "report/page.h"
#include "runs_folder.h"
#include "serve/event_stream.h"
#include "serve/site.h"

namespace paceline::serve {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class SiteTest : public RunsFolder {
 protected:
  [[nodiscard]] SiteOptions options() {
    return {.directory = directory_,
            .token = "",
            .document = [this](const fs::path& run, bool) -> report::Document {
              ++made_;
              if (!fs::exists(run / "record.json")) base::fail(base::ErrorKind::data, "no record is in it");
              return {.title = "of " + run.filename().string()};
            },
            .stop = stop_.get_token()};
  }
  static HttpRequest request(const std::string& path, std::map<std::string, std::string> query = {}) {
    return {.path = path, .query = std::move(query), .host = "localhost:1"};
  }
  static std::string text(const HttpResponse& response) { return response.body ? *response.body : ""; }

  std::stop_source stop_;
  int made_ = 0;
};

TEST_F(SiteTest, ListsRunsWithoutTrustingTheirNames) {
  ended("<script>alert(1)</script> &?");
  Site site(options());
  const auto page = site.answer(request("/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(text(page), Not(HasSubstr("<script>")));
  EXPECT_THAT(text(page), HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt; &amp;?"));
  EXPECT_THAT(text(page), HasSubstr("href=\"/run/%3Cscript%3Ealert%281%29%3C/script%3E%20%26%3F\""));
  EXPECT_EQ(site.answer(request("/run/<script>alert(1)</script> &?")).status, 200);
}

TEST_F(SiteTest, NothingButRunsIsOpenedWhateverTheAddressSays) {
  ended("a");
  fs::create_directories(directory_ / "outside");
  std::ofstream(directory_ / "outside" / "record.json") << "{}";
  fs::create_directories(directory_ / "inside");
  fs::rename(directory_ / "a", directory_ / "inside" / "a");
  auto narrow = options();
  narrow.directory = directory_ / "inside";
  Site site(narrow);
  const auto secret = fs::absolute(directory_ / "outside").string();
  for (const auto& id : {std::string("../outside"), secret, std::string("a/../../outside"), std::string(".."),
                         std::string(""), std::string("."), std::string("a/"), std::string("a/."),
                         std::string("a\0b", 3), "/" + secret, std::string("..%2foutside")}) {
    EXPECT_EQ(site.answer(request("/run/" + id)).status, 404) << id;
    EXPECT_EQ(site.answer(request("/document/" + id)).status, 404) << id;
    EXPECT_EQ(site.answer(request("/events", {{"run", id}})).status, 404) << id;
  }
  EXPECT_EQ(site.answer(request("/etc/passwd")).status, 404);
  EXPECT_EQ(made_, 0);
  EXPECT_EQ(site.answer(request("/run/a")).status, 200);
}

TEST_F(SiteTest, ThePageKnowsItsEventsAndAReportIsMadeOnceForARecord) {
  const auto folder = ended("a");
  std::ofstream(folder / "record.json") << "{}";
  Site site(options());
  const auto page = text(site.answer(request("/run/a")));
  EXPECT_THAT(page,
              HasSubstr(fmt::format("<meta name=\"paceline-live\" content=\"/events?run=a&amp;from={}\">",
                                    fs::file_size(folder / measure::kEventsFile))));
  const auto data = text(site.answer(request("/document/a")));
  EXPECT_THAT(data, HasSubstr("\"title\":\"of a\""));
  EXPECT_THAT(page, HasSubstr(report::page_is_built() ? report::compressed(data) : "\"title\":\"of a\""));
  EXPECT_EQ(made_, 1);
  std::ofstream(folder / "record.json") << "{ }";
  (void)site.answer(request("/document/a"));
  EXPECT_EQ(made_, 2);
}

// `paceline serve DIR` with the directory of one run: browsers make /run/ of /run/. before they ask.
TEST_F(SiteTest, ARunThatIsTheDirectoryItselfIsAskedForByNoName) {
  const auto folder = ended("a");
  std::ofstream(folder / "record.json") << "{}";
  auto narrow = options();
  narrow.directory = folder;
  Site site(narrow);
  EXPECT_THAT(text(site.answer(request("/"))), HasSubstr("href=\"/run/.\""));
  for (const char* path : {"/run/.", "/run/", "/document/.", "/document/"})
    EXPECT_EQ(site.answer(request(path)).status, 200) << path;
}

TEST_F(SiteTest, ARunWithoutRecordsHasAPageThatSaysSo) {
  const auto folder = begun("a");
  const Lock lock(folder);
  Site site(options());
  const auto got = site.answer(request("/document/a"));
  EXPECT_EQ(got.status, 200);
  EXPECT_THAT(text(got), HasSubstr("Nothing was measured yet"));
}

TEST_F(SiteTest, AReportOfARunInProgressIsMadeAnewNowAndThenAndAtItsEnd) {
  const auto folder = begun("a");
  std::ofstream(folder / "record.json") << "{}";
  const Lock lock(folder);
  Site site(options());
  (void)site.answer(request("/document/a"));
  std::ofstream(folder / "record.json") << "{ }";
  (void)site.answer(request("/document/a"));
  EXPECT_EQ(made_, 1);  // many clients and many cells: the processor is the run's
  append("a", "{\"event\":\"end\",\"at\":1002,\"status\":\"complete\"}\n");
  (void)site.answer(request("/document/a"));
  EXPECT_EQ(made_, 2);  // the last one is whole
}

TEST_F(SiteTest, HeadersKeepAnswersToThisClientAndThisPage) {
  Site site(options());
  const auto got = site.answer(request("/"));
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}, {"X-Frame-Options", "DENY"}})
    EXPECT_THAT(got.headers, ::testing::Contains(std::pair{name, value}));
}

TEST_F(SiteTest, WithATokenNothingIsAnsweredWithoutIt) {
  ended("a");
  auto guarded = options();
  guarded.token = "0123456789";
  Site site(guarded);
  for (const char* path : {"/", "/run/a", "/document/a", "/metrics", "/events", "/nothing"})
    EXPECT_EQ(site.answer(request(path)).status, 401) << path;
  EXPECT_EQ(site.answer(request("/", {{"token", "0123456788"}})).status, 401);
  const auto list = site.answer(request("/", {{"token", "0123456789"}}));
  EXPECT_EQ(list.status, 200);
  EXPECT_THAT(text(list), HasSubstr("href=\"/run/a?token=0123456789\""));
  // The page itself holds no token: who saves it gives none away.
  EXPECT_THAT(text(site.answer(request("/run/a", {{"token", "0123456789"}}))), Not(HasSubstr("0123456789")));
  EXPECT_EQ(Site(options()).answer({.path = "/", .host = "evil.example"}).status, 403);
}

// A report that takes long, as of a huge record, is its own client's to wait for.
TEST_F(SiteTest, NobodyWaitsForAnotherRunsReport) {
  for (const char* run : {"a", "large"}) std::ofstream(ended(run) / "record.json") << "{}";
  std::promise<void> entered, released;
  auto slow = options();
  slow.document = [&](const fs::path& run, bool) -> report::Document {
    if (run.filename() == "large") {
      entered.set_value();
      released.get_future().wait();
    }
    return {.title = run.filename().string()};
  };
  Site site(slow);
  std::jthread waits([&] { (void)site.answer(request("/document/large")); });
  entered.get_future().wait();
  EXPECT_EQ(site.answer(request("/document/a")).status, 200);
  EXPECT_EQ(site.answer(request("/")).status, 200);
  released.set_value();
}

// A directory of a slow file system: nothing is missing while it is read for the first time.
TEST_F(SiteTest, DeniesNoRunBeforeTheFirstList) {
  const auto folder = ended("a");
  std::promise<void> entered, released;
  auto slow = options();
  slow.list = [&, calls = 0]() mutable {
    if (calls++ == 0) {
      entered.set_value();
      released.get_future().wait();
    }
    return std::vector<serve::Run>{{.id = "a", .path = folder}};
  };
  Site site(slow);
  auto first = std::async([&] { return site.answer(request("/")).status; });
  entered.get_future().wait();
  auto waits = std::async([&] { return site.answer(request("/run/a")).status; });
  EXPECT_EQ(waits.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout)
      << "it is not known yet";
  stop_.request_stop();  // stands for the end of its patience
  EXPECT_EQ(waits.get(), 503);
  const auto busy = site.answer(request("/document/a"));
  EXPECT_EQ(busy.status, 503);
  EXPECT_THAT(text(busy), HasSubstr("still being listed"));
  EXPECT_THAT(busy.headers, ::testing::Contains(std::pair<std::string, std::string>("Retry-After", "5")));
  released.set_value();
  EXPECT_EQ(first.get(), 200);
  EXPECT_EQ(site.answer(request("/run/a")).status, 200);
  EXPECT_EQ(site.answer(request("/run/b")).status, 404);
}

TEST_F(SiteTest, FilesThatAreNotRegularDelayNobody) {
  ended("a");
  fs::create_directories(directory_ / "b" / "records");
  ASSERT_EQ(::mkfifo((directory_ / "b" / "records" / "one.json").c_str(), 0600), 0);
  fs::create_directories(directory_ / "c");
  ASSERT_EQ(::mkfifo((directory_ / "c" / "record.json").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((directory_ / "a" / "record.json").c_str(), 0600), 0);
  Site site(options());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i)
    for (const char* path : {"/", "/metrics", "/run/a", "/run/b"}) (void)site.answer(request(path));
  // The whole test would take two minutes if each were waited for.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1));
}

TEST_F(SiteTest, TooManyStreamsAreRefusedAndLeaveAPlaceWhenTheyEnd) {
  ended("a");
  auto few = options();
  few.most_streams = 2;
  Site site(few);
  auto first = site.answer(request("/events", {{"run", "a"}}));
  const auto second = site.answer(request("/events", {{"run", "a"}}));
  EXPECT_TRUE(first.stream && second.stream);
  EXPECT_EQ(site.answer(request("/events", {{"run", "a"}})).status, 503);
  first = {};
  EXPECT_TRUE(site.answer(request("/events", {{"run", "a"}})).stream);
}

/// Ids and names of the server-sent events in `text`.
std::vector<std::pair<std::int64_t, std::string>> events_in(const std::string& text) {
  std::vector<std::pair<std::int64_t, std::string>> events;
  for (auto at = text.find("id: "); at != std::string::npos; at = text.find("id: ", at + 1)) {
    const auto name = text.find("event: ", at) + 7;
    events.emplace_back(std::atoll(text.c_str() + at + 4), text.substr(name, text.find('\n', name) - name));
  }
  return events;
}

TEST_F(SiteTest, AClientThatComesAgainMissesNothing) {
  const auto folder = begun("a");
  std::vector<std::string> seen;
  std::int64_t last = 0;
  for (int visit = 0; visit < 5; ++visit) {
    Site site(options());
    auto asked = request("/events", {{"run", "a"}});
    if (last > 0) asked.last_event_id = std::to_string(last);
    append("a", fmt::format("{{\"event\":\"step{}\",\"at\":1}}\n{{\"event\":\"cut", visit));
    const auto response = site.answer(asked);
    ASSERT_TRUE(response.stream);
    for (const auto& [id, name] : events_in(response.stream().value())) {
      EXPECT_GT(id, last);
      last = id;
      if (name.starts_with("step")) seen.push_back(name);
    }
    append("a", "\n");  // what was cut is no event
  }
  EXPECT_THAT(seen, ::testing::ElementsAre("step", "step0", "step1", "step2", "step3", "step4"));
}

TEST_F(SiteTest, AClientIsToldFirstWhereTheRunStands) {
  begun("a");
  Site site(options());
  auto asked = request("/events", {{"run", "a"}});
  EXPECT_THAT(site.answer(asked).stream().value(),
              ::testing::StartsWith("event: status\ndata: {\"event\":\"status\""));
  asked.last_event_id = "1";
  EXPECT_THAT(site.answer(asked).stream().value(), HasSubstr("\"updates_done\":10"));
}

TEST_F(SiteTest, AStreamEndsWhenTheServerDoesAndSaysWhenAFileBeginsAnew) {
  using std::chrono::milliseconds;
  const auto folder = begun("a");
  const auto feed = std::make_shared<EventFeed>(folder / measure::kEventsFile, milliseconds(1));
  EventStream stream(feed, 0, stop_.get_token(), milliseconds(50));
  EXPECT_EQ(events_in(stream.next().value()).size(), 2u);
  EXPECT_EQ(stream.next(), ": still here\n\n");
  fs::remove(folder / measure::kEventsFile);
  append("a", "{\"event\":\"start\",\"at\":1}\n");
  std::string text;
  for (int i = 0; i < 100 && text.find("event: start") == std::string::npos; ++i)
    text += stream.next().value();
  EXPECT_THAT(text, HasSubstr("event: reset"));
  EXPECT_LT(text.find("event: reset"), text.find("event: start"));
  stop_.request_stop();
  EXPECT_FALSE(stream.next());
}

TEST_F(SiteTest, OneWhoIsFarBehindGetsAllTheSame) {
  using std::chrono::milliseconds;
  begun("a");
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += fmt::format("{{\"event\":\"step\",\"at\":1,\"update\":{}}}\n", i);
  const auto folder = append("a", many);
  const auto feed = std::make_shared<EventFeed>(folder / measure::kEventsFile, milliseconds(1));
  EventStream stream(feed, 0, stop_.get_token(), milliseconds(20));
  std::string text;
  while (!text.ends_with(": still here\n\n")) text += stream.next().value();
  append("a", "{\"event\":\"end\",\"at\":2}\n");
  for (int i = 0; i < 100 && text.find("event: end") == std::string::npos; ++i) text += stream.next().value();
  const auto events = events_in(text);
  ASSERT_EQ(events.size(), 20'003u);
  EXPECT_TRUE(std::is_sorted(events.begin(), events.end(),
                             [](const auto& a, const auto& b) { return a.first < b.first; }));
}

TEST_F(SiteTest, AStreamThatWaitsIsWokenByTheServersEnd) {
  const auto feed = std::make_shared<EventFeed>(directory_ / "nothing");
  EventStream stream(feed, 0, stop_.get_token(), std::chrono::hours(1));
  EXPECT_EQ(stream.next(), "retry: 2000\n\n");
  std::jthread end([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop_.request_stop();
  });
  EXPECT_FALSE(stream.next());
}

TEST(EventId, IsANumberOrNothing) {
  EXPECT_EQ(event_id("123"), 123);
  for (const char* none : {"", "-5", "12x", "x", " 7", "99999999999999999999999"})
    EXPECT_EQ(event_id(none), 0) << none;
}

TEST(ServedPage, MayAskItsServerAndOnlyItWhileOthersMayAskNobody) {
  const std::string page =
      "<html><head><meta content=\"default-src 'none'; script-src 'unsafe-inline'\"></head>";
  const auto live = served_page(page, "/events?run=a&b");
  EXPECT_THAT(live, HasSubstr("default-src 'none'; connect-src 'self'; script-src"));
  EXPECT_THAT(live, HasSubstr("<head><meta name=\"paceline-live\" content=\"/events?run=a&amp;b\">"));
  EXPECT_THAT(report::fill_page(report::page_template(), "{}"), Not(HasSubstr("connect-src")));
}

TEST_F(SiteTest, ThroughARealServer) {
  if (!has_http_server()) GTEST_SKIP() << "built without libcpp-httplib-dev";
  ended("a b");
  Site site(options());
  const auto server =
      open_http_server("127.0.0.1", 0, {}, [&](const HttpRequest& asked) { return site.answer(asked); });
  const std::jthread thread([&] { server->run(stop_.get_token()); });
  const std::shared_ptr<void> at_end(nullptr, [&](void*) { stop_.request_stop(); });
  EXPECT_EQ(status_of(answer(server->port(), "/run/a%20b")), 200);
  EXPECT_EQ(status_of(answer(server->port(), "/run/..%2f..%2fetc")), 404);
  EXPECT_EQ(status_of(answer(server->port(), "/run/../../../etc/passwd")), 404);
  EXPECT_EQ(status_of(answer(server->port(), "/", "Host: evil.example\r\n")), 403);
  Client follower(server->port());
  follower.get("/events?run=a%20b", "Host: localhost\r\nAccept-Encoding: gzip\r\n");
  EXPECT_THAT(follower.read_until("\"complete\"}\n\n"), HasSubstr("text/event-stream"));
  const auto before = events_in(follower.read_until("\"complete\"}\n\n"));
  ASSERT_EQ(before.size(), 3u);
  append("a b", "{\"event\":\"step\",\"at\":1005,\"update\":11}\n");
  follower.read_until("\"update\":11}");
  // Another one, who has seen two of them.
  Client second(server->port());
  second.get("/events?run=a%20b", fmt::format("Host: localhost\r\nLast-Event-ID: {}\r\n", before[1].first));
  const auto after = events_in(second.read_until("\"update\":11}"));
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0], before[2]);
}

}  // namespace

namespace {

HttpRequest request(const std::string& host, const std::string& authorization = "",
                    const std::string& token = "") {
  HttpRequest asked{.path = "/", .host = host, .authorization = authorization};
  if (!token.empty()) asked.query["token"] = token;
  return asked;
}

TEST(Access, NoOtherSitesPageAsksWithoutToken) {
  for (const char* own : {"127.0.0.1:8765", "localhost", "localhost:1", "[::1]:8765", "127.0.0.1"})
    EXPECT_EQ(refusal(request(own), ""), "") << own;
  // A name of an attacker's that was made to mean 127.0.0.1.
  for (const char* other :
       {"", "evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil", "[", "[::1"})
    EXPECT_NE(refusal(request(other), ""), "") << other;
}

TEST(Access, WithATokenItIsNeeded) {
  const std::string token = "0123456789abcdef";
  EXPECT_EQ(refusal(request("any.host", "Bearer " + token), token), "");
  EXPECT_EQ(refusal(request("any.host", "", token), token), "");
  for (const char* wrong : {"", "0", "0123456789abcdeF", "0123456789abcdef0", "0123456789abcde",
                            "0123456789abcdef0123456789abcdef"}) {
    EXPECT_NE(refusal(request("localhost", fmt::format("Bearer {}", wrong)), token), "") << wrong;
    EXPECT_NE(refusal(request("localhost", "", wrong), token), "") << wrong;
  }
  EXPECT_NE(refusal(request("localhost", token), token), "");  // without Bearer
}

TEST(Access, TokensAreComparedWhole) {
  EXPECT_TRUE(is_same_token("abc", "abc"));
  for (const char* other : {"", "ab", "abd", "bbc", "abcabc", "abca"})
    EXPECT_FALSE(is_same_token("abc", other)) << other;
  EXPECT_FALSE(is_same_token("", ""));  // nobody's token opens nothing
  EXPECT_FALSE(is_same_token("", "x"));
}

TEST(Access, MadeTokensAreLongAndNotTheSame) {
  const auto one = make_token();
  EXPECT_EQ(one.size(), 32u);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, make_token());
}

TEST(Access, KnowsTheLoopback) {
  for (const char* own : {"127.0.0.1", "::1", "localhost"}) EXPECT_TRUE(is_loopback(own)) << own;
  for (const char* other : {"0.0.0.0", "::", "10.0.0.1", "", "127.0.0.1 "})
    EXPECT_FALSE(is_loopback(other)) << other;
}

}  // namespace
}  // namespace paceline::serve
