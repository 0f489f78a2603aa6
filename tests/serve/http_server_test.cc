#include "serve/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <thread>

#include "base/error.h"
#include "client.h"

namespace paceline::serve {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class Serving : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_http_server()) GTEST_SKIP() << "built without libcpp-httplib-dev";
  }
  ~Serving() override { end(); }

  void begin(const HttpLimits& limits, HttpHandler handler) {
    server_ = open_http_server("127.0.0.1", 0, limits, std::move(handler));
    thread_ = std::jthread([this](const std::stop_token& stop) { server_->run(stop); });
  }
  void end() {
    thread_ = {};
    server_.reset();
  }
  [[nodiscard]] int port() const { return server_->port(); }

  static HttpResponse echo(const HttpRequest& request) {
    std::string text = request.path;
    for (const auto& [name, value] : request.query) text += fmt::format(" {}={}", name, value);
    return {.body = std::make_shared<const std::string>(text), .headers = {{"X-Own", "yes"}}};
  }

 private:
  std::unique_ptr<HttpServer> server_;
  std::jthread thread_;
};

TEST_F(Serving, AnswersAndDecodesAndEndsTheConnection) {
  begin({}, echo);
  const auto got = answer(port(), "/run/a%20b?x=1%262&x=3");
  EXPECT_EQ(status_of(got), 200);
  EXPECT_EQ(body_of(got), "/run/a b x=1&2");
  EXPECT_THAT(got, HasSubstr("X-Own: yes"));
  EXPECT_THAT(got, HasSubstr("Connection: close"));
}

TEST_F(Serving, TakesNothingButGetAndHead) {
  begin({}, echo);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    Client client(port());
    client.send(fmt::format("{} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n", method));
    EXPECT_EQ(status_of(client.read_all()), 405) << method;
  }
  Client head(port());
  head.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(body_of(head.read_all()), "");
  EXPECT_EQ(status_of(head.read_all()), 200);
}

TEST_F(Serving, AHandlerThatThrowsIsAnAnswer) {
  begin({}, [](const HttpRequest&) -> HttpResponse { base::fail(base::ErrorKind::data, "no such thing"); });
  const auto got = answer(port(), "/");
  EXPECT_EQ(status_of(got), 500);
  EXPECT_THAT(got, HasSubstr("no such thing"));
}

TEST_F(Serving, RefusesHugeRequests) {
  std::atomic<int> asked = 0;
  begin({}, [&](const HttpRequest& request) {
    ++asked;
    return echo(request);
  });
  for (const auto& request : {"GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
                              "GET / HTTP/1.1\r\nX: " + std::string(100'000, 'a') + "\r\n\r\n",
                              [] {
                                std::string many = "GET / HTTP/1.1\r\n";
                                for (int i = 0; i < 10'000; ++i) many += fmt::format("X-{}: 1\r\n", i);
                                return many + "\r\n";
                              }(),
                              std::string(100'000, 'a'), std::string(100'000, '\n')}) {
    Client client(port());
    client.send(request);
    EXPECT_NE(status_of(client.read_all()), 200) << request.substr(0, 30);
    EXPECT_TRUE(client.has_ended());
  }
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(status_of(answer(port(), "/")), 200);  // and it still serves
}

TEST_F(Serving, AClientThatAsksSlowlyIsLeftWhenItsTimeIsOver) {
  begin({.to_ask = milliseconds(300)}, echo);
  Client silent(port()), slow(port());
  slow.send("GET / HT");
  std::jthread drip([&](const std::stop_token& stop) {  // a byte now and then renews no time
    while (!stop.stop_requested() && slow.send("T")) std::this_thread::sleep_for(milliseconds(50));
  });
  silent.read_all();
  EXPECT_TRUE(silent.has_ended());
  EXPECT_NE(status_of(slow.read_all()), 200);
  EXPECT_TRUE(slow.has_ended());
}

TEST_F(Serving, AClientThatTakesNothingIsLeft) {
  std::atomic<int> left = 0;
  begin({.to_take = milliseconds(300)}, [&](const HttpRequest&) {
    const auto gone = std::shared_ptr<void>(nullptr, [&](void*) { ++left; });
    return HttpResponse{
        .stream = [gone]() -> std::optional<std::string> { return std::string(1 << 20, 'x'); }};
  });
  Client client(port());
  client.get("/");
  // It reads not a byte: the stream ends when the system's buffers are full and the time is over.
  for (int i = 0; i < 400 && left == 0; ++i) std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(left, 1);
}

TEST_F(Serving, AnAnswerHasAnEnd) {
  begin({.to_end = milliseconds(300)}, [](const HttpRequest&) {
    return HttpResponse{.type = "text/event-stream", .stream = []() -> std::optional<std::string> {
                          std::this_thread::sleep_for(milliseconds(20));
                          return ": here\n\n";
                        }};
  });
  Client client(port());
  client.get("/");
  EXPECT_THAT(client.read_all(), HasSubstr(": here"));
  EXPECT_TRUE(client.has_ended());
}

TEST_F(Serving, RefusesConnectionsBeyondItsLimitAtOnce) {
  begin({.connections = 3}, [](const HttpRequest& request) {
    if (request.path == "/") return echo(request);
    return HttpResponse{.stream = []() -> std::optional<std::string> {
      std::this_thread::sleep_for(milliseconds(20));
      return ".";
    }};
  });
  std::list<Client> taken;
  for (int i = 0; i < 3; ++i) {
    taken.emplace_back(port()).get("/stream");
    taken.back().read_until("\r\n\r\n.");
  }
  EXPECT_EQ(status_of(answer(port(), "/")), 503);
  taken.clear();
  int status = 0;  // the place is free when the server has noticed
  for (int i = 0; i < 200 && status != 200; ++i) {
    std::this_thread::sleep_for(milliseconds(20));
    status = status_of(answer(port(), "/"));
  }
  EXPECT_EQ(status, 200);
}

TEST_F(Serving, ARangeIsAnsweredWithTheWhole) {
  begin({}, echo);
  std::string many = "bytes=0-";
  while (many.size() < 12'000) many += ",0-";
  for (const auto& range : {std::string("bytes=0-1"), std::string("bytes=100-200"), std::string("bytes=-100"),
                            std::string("bytes=5-1"), std::string("bytes=9999999999999999999999-"),
                            std::string("x"), std::string(), many})
    for (const char* name : {"Range", "range", "RANGE"}) {
      const auto got =
          answer(port(), "/abc", fmt::format("Host: localhost\r\n{}: {}\r\nX: y\r\n", name, range));
      EXPECT_EQ(status_of(got), 200) << name << ": " << range.substr(0, 40);
      EXPECT_EQ(body_of(got), "/abc");
      EXPECT_THAT(got, HasSubstr("Accept-Ranges: none"));
    }
}

TEST_F(Serving, StopsWhileClientsFollow) {
  std::stop_source stop;
  begin({}, [&](const HttpRequest&) {
    return HttpResponse{.stream = [&]() -> std::optional<std::string> {
      std::this_thread::sleep_for(milliseconds(20));
      if (stop.stop_requested()) return std::nullopt;
      return ".";
    }};
  });
  Client client(port());
  client.get("/");
  client.read_until("\r\n\r\n.");
  stop.request_stop();
  end();
  client.read_all();
  EXPECT_TRUE(client.has_ended());
}

TEST_F(Serving, SaysWhyAnAddressCannotBeHad) {
  begin({}, echo);
  EXPECT_THROW((void)open_http_server("127.0.0.1", port(), {}, echo), base::Error);
  EXPECT_THROW((void)open_http_server("203.0.113.7", 0, {}, echo), base::Error);  // nobody's
}

}  // namespace
}  // namespace paceline::serve
