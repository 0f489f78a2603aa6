/// Strangers at the port where the processes of a run meet, and processes that do meet there.

#include "comm/gloo/meeting_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <list>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "base/error.h"

namespace paceline::comm::gloo {
namespace {

using base::Clock;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr milliseconds kLong{20000};

/// One connection to a meeting.
class Visitor {
 public:
  explicit Visitor(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0;
  }
  ~Visitor() { ::close(socket_); }
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;
  [[nodiscard]] bool is_connected() const { return is_connected_; }

  /// Sends as much as the connection takes without waiting; what is left is left.
  std::size_t send(std::string_view bytes) const {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const auto now = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (now <= 0) break;
      sent += static_cast<std::size_t>(now);
    }
    return sent;
  }
  /// `bytes` bytes, or fewer if the server closes the connection.
  std::string receive(std::size_t bytes) {
    std::string text;
    for (const auto until = Clock::now() + kLong; text.size() < bytes && Clock::now() < until;) {
      pollfd look{socket_, POLLIN, 0};
      if (::poll(&look, 1, 100) <= 0) continue;
      std::string piece(bytes - text.size(), '\0');
      const auto count = ::recv(socket_, piece.data(), piece.size(), 0);
      if (count <= 0) {
        has_ended_ = true;
        break;
      }
      text.append(piece, 0, static_cast<std::size_t>(count));
    }
    return text;
  }
  std::string line() {
    std::string text;
    for (std::string one = receive(1); !one.empty() && one != "\n"; one = receive(1)) text += one;
    return text;
  }
  /// Whether the server closes the connection.
  bool is_left() {
    (void)receive(1 << 20);
    return has_ended_;
  }
  /// The whole greeting of a process; the line with which it ends.
  std::string greet(const Launch& launch) {
    const auto hello = hello_of(launch, make_nonce());
    send(hello + "\n");
    const auto challenge = line();
    const auto words = words_of(challenge);
    if (words.size() != 3 || words[0] != kMeeting) return challenge;
    EXPECT_EQ(words[2], proof_of(launch.secret, "server", hello, words[1])) << "the server knows the secret";
    send(proof_of(launch.secret, "guest", hello, words[1]) + "\n");
    return line();
  }
  void keep(const std::string& key, const std::string& value) const {
    send("s" + length_of(key.size()) + key + length_of(value.size()) + value);
  }
  std::string ask(const std::string& key) {
    send("g" + length_of(key.size()) + key);
    const auto size = receive(4);
    return size.size() == 4 ? receive(read_length(size)) : "";
  }

 private:
  int socket_;
  bool is_connected_ = false, has_ended_ = false;
};

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

class Meeting : public testing::Test {
 protected:
  static Launch place(int process, int processes = 2) {
    return {.process = process,
            .processes = processes,
            .meeting_host = "127.0.0.1",
            .listen_at = "127.0.0.1",
            .secret = "a secret of the test"};
  }
  void begin(const MeetingLimits& limits = {}, int processes = 2) {
    const auto say = [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      said_ += text + "\n";
    };
    server_ = std::make_unique<MeetingServer>(place(0, processes), say, limits);  // port 0: any that is free
  }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  std::string said() {
    const std::lock_guard lock(mutex_);
    return said_;
  }
  /// Two processes meet: each gives its value and gets the other's.
  void expect_to_meet() {
    Visitor first(port()), second(port());
    ASSERT_EQ(first.greet(place(0)), kWelcome);
    ASSERT_EQ(second.greet(place(1)), kWelcome);
    first.keep("0", "of the first");
    second.keep("1", "of the second");
    EXPECT_EQ(first.ask("1"), "of the second");
    EXPECT_EQ(second.ask("0"), "of the first");
  }

  std::unique_ptr<MeetingServer> server_;

 private:
  std::mutex mutex_;
  std::string said_;
};

TEST_F(Meeting, ClosesItsPortWhenAllHaveGiven) {
  begin();
  Visitor first(port()), second(port()), silent(port());
  ASSERT_EQ(first.greet(place(0)), kWelcome);
  ASSERT_EQ(second.greet(place(1)), kWelcome);
  first.keep("0", "a");
  EXPECT_EQ(second.ask("0"), "a");
  EXPECT_TRUE(Visitor(port()).is_connected()) << "one has given nothing yet";
  second.keep("1", "b");
  EXPECT_EQ(first.ask("1"), "b");
  EXPECT_TRUE(silent.is_left());
  EXPECT_FALSE(Visitor(port()).is_connected());
  EXPECT_EQ(first.ask("0"), "a") << "those who have met go on asking";
}

TEST_F(Meeting, LetsInWhoKnowsTheSecret) {
  begin();
  for (const std::string secret : {"", "another secret of a test"}) {
    auto stranger = place(1);
    stranger.secret = secret;
    Visitor visitor(port());
    const auto hello = hello_of(stranger, make_nonce());
    visitor.send(hello + "\n");
    auto answer = visitor.line();
    if (!secret.empty()) {
      ASSERT_THAT(answer, StartsWith(std::string(kMeeting)));
      visitor.send(proof_of(secret, "guest", hello, words_of(answer)[1]) + "\n");
      answer = visitor.line();
      EXPECT_THAT(said(), HasSubstr("RANK=1 has another PACELINE_SECRET"));
    }
    EXPECT_THAT(answer, AllOf(StartsWith(std::string(kElsewhere)), HasSubstr("PACELINE_SECRET")));
    EXPECT_TRUE(visitor.is_left());
  }
  // Neither the server's proof nor that of another connection is one.
  Visitor mirror(port());
  const auto hello = hello_of(place(1), "0123");
  mirror.send(hello + "\n");
  mirror.send(words_of(mirror.line())[2] + "\n");
  EXPECT_THAT(mirror.line(), StartsWith(std::string(kElsewhere)));
  expect_to_meet();
}

TEST_F(Meeting, NamesASecondProcessOfOneRank) {
  begin({}, 3);
  Visitor first(port());
  ASSERT_EQ(first.greet(place(1, 3)), kWelcome);
  {
    Visitor second(port());
    EXPECT_EQ(second.greet(place(1, 3)),
              "refused process 1 is here already, from 127.0.0.1; give each process a RANK of its own");
  }
  EXPECT_THAT(said(), HasSubstr("a second process with RANK=1 has come, from 127.0.0.1"));
  first.keep("1", "of the first");
  EXPECT_EQ(first.ask("1"), "of the first");
}

TEST_F(Meeting, AProcessThatLeftMayComeAgain) {
  begin();
  { ASSERT_EQ(Visitor(port()).greet(place(1)), kWelcome); }
  std::string answer;
  for (int i = 0; i < 200 && answer != kWelcome; ++i) answer = Visitor(port()).greet(place(1));
  EXPECT_EQ(answer, kWelcome);
}

TEST_F(Meeting, SaysWhyAnotherRunIsAnother) {
  begin();
  auto larger = place(1, 3), other = place(1), outside = place(2, 2);
  other.job = "another job";
  EXPECT_THAT(Visitor(port()).greet(larger), HasSubstr("has WORLD_SIZE 2, and process 1 says 3"));
  EXPECT_THAT(Visitor(port()).greet(other), HasSubstr("another run meets there"));
  EXPECT_THAT(Visitor(port()).greet(outside), HasSubstr("RANK 2 is not below WORLD_SIZE 2"));
  for (const std::string garbage :
       {"", " ", " x", " 2 1", " 2 x open n j", " 2 1 open n j more words", " 2  open"}) {
    Visitor visitor(port());
    visitor.send(std::string(kMeeting) + garbage + "\n");
    EXPECT_THAT(visitor.line(), StartsWith(std::string(kElsewhere))) << garbage;
  }
}

TEST_F(Meeting, LeavesStrangersSoonAndMeetsAmongThem) {
  begin({.to_greet = milliseconds(300)});
  const auto before = open_descriptors();
  std::list<Visitor> all;
  const std::string hello = hello_of(place(1), "0123") + "\n";
  for (const auto& text : {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"), std::string("p"),
                           hello.substr(0, 20), hello, hello + "0123\n", std::string(kLongestGreeting, 'x'),
                           std::string("\0\n", 2), std::string("\x16\x03\x01", 3),
                           std::string("g\x01\0\0\0"
                                       "1",
                                       6)}) {
    all.emplace_back(port());
    ASSERT_TRUE(all.back().is_connected());
    all.back().send(text);
  }
  std::string much(std::size_t{16} << 20, 'x');
  all.emplace_back(port());
  EXPECT_LT(all.back().send(much), much.size()) << "what the system's buffers take, no more";
  expect_to_meet();
  for (auto& visitor : all) EXPECT_TRUE(visitor.is_left());
  all.clear();
  EXPECT_LE(open_descriptors(), before + 1);
}

/// tests/ranks/strangers.py opens ten thousand.
TEST_F(Meeting, ManySilentConnectionsHaveABound) {
  begin();
  std::list<Visitor> silent;
  const auto before = open_descriptors();
  constexpr std::size_t kMany = 300;
  for (std::size_t i = 0; i < kMany; ++i) ASSERT_TRUE(silent.emplace_back(port()).is_connected());
  Visitor guest(port());
  ASSERT_EQ(guest.greet(place(1)), kWelcome) << "whoever speaks is not kept waiting by who does not";
  EXPECT_LE(open_descriptors(), before + kMany + 1 + MeetingLimits().strangers + 1);
}

TEST_F(Meeting, KeepsLittleOfWhoeverIsIn) {
  begin({}, 3);
  const std::string large(longest_value(3) + 1, 'x'), longest(longest_value(3), 'x');
  const auto is_thrown_out = [&](const std::string& request) {
    Visitor visitor(port());
    if (visitor.greet(place(1, 3)) != kWelcome) return false;
    visitor.send(request);
    return visitor.is_left();
  };
  const auto request = [](const std::string& key, const std::string& value) {
    return "s" + length_of(key.size()) + key + length_of(value.size()) + value;
  };
  EXPECT_TRUE(is_thrown_out(request("1", large)));
  EXPECT_TRUE(is_thrown_out(request(std::string(65, 'k'), "v")));
  EXPECT_TRUE(is_thrown_out(request("", "v")));
  EXPECT_TRUE(is_thrown_out("x" + length_of(1) + "k"));
  std::string many;
  for (int i = 0; i < 9; ++i) many += request(fmt::format("k{}", i), "v");
  EXPECT_TRUE(is_thrown_out(many));
  Visitor first(port());
  ASSERT_EQ(first.greet(place(0, 3)), kWelcome);
  first.keep("0", longest);
  ASSERT_EQ(first.ask("0"), longest);
  EXPECT_TRUE(is_thrown_out(request("0", "the value of another process")));
  EXPECT_EQ(first.ask("0"), longest);
}

TEST_F(Meeting, WaitsForNobodyWhoTakesNothing) {
  begin({}, 3);
  Visitor first(port()), greedy(port());
  ASSERT_EQ(first.greet(place(0, 3)), kWelcome);
  ASSERT_EQ(greedy.greet(place(1, 3)), kWelcome);
  first.keep("0", std::string(longest_value(3), 'x'));
  for (int i = 0; i < 200; ++i) greedy.send("g" + length_of(1) + "0");  // and reads no answer
  Visitor last(port());
  ASSERT_EQ(last.greet(place(2, 3)), kWelcome);
  EXPECT_EQ(last.ask("0").size(), longest_value(3));
}

TEST_F(Meeting, ReadsNothingFromWhoWaits) {
  begin({}, 3);
  Visitor waits(port()), other(port());
  ASSERT_EQ(waits.greet(place(1, 3)), kWelcome);
  waits.send("g" + length_of(1) + "2");
  ASSERT_EQ(other.greet(place(2, 3)), kWelcome) << "so the question has been read";
  const std::string much(std::size_t{16} << 20, 'x');
  EXPECT_LT(waits.send(much), much.size()) << "what the system's buffers take, no more";
  other.keep("2", "at last");
  EXPECT_EQ(waits.receive(4 + 7), length_of(7) + "at last");
}

TEST_F(Meeting, ListensWhereItIsToldAlone) {
  begin();
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(port());
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);  // 127.0.0.2, which is this host too
  EXPECT_NE(::connect(socket, reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
  ::close(socket);
  auto taken = place(0);
  taken.meeting_port = port();
  EXPECT_THROW(MeetingServer{taken}, base::Error);
}

}  // namespace
}  // namespace paceline::comm::gloo
