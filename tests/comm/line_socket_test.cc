#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "comm/line_socket.h"

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;

TEST(LineSocket, AnAddressIsReadAsItWasWritten) {
  Address address{.token = std::numeric_limits<std::uint64_t>::max(), .port = 65535};
  std::strncpy(address.host, "host-b", sizeof address.host - 1);
  address.ipv4[0] = 0xffffffffu;
  address.ipv4[7] = 1;
  const auto read = address_of(text_of(address));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->token, address.token);
  EXPECT_EQ(read->port, 65535);
  EXPECT_STREQ(read->host, "host-b");
  EXPECT_TRUE(std::ranges::equal(read->ipv4, address.ipv4));
  const auto text = text_of(address);
  EXPECT_FALSE(address_of(""));
  EXPECT_FALSE(address_of(text.substr(0, text.rfind(' ')))) << "an address too few";
  EXPECT_FALSE(address_of("1 65536 b 0 0 0 0 0 0 0 0"));
  EXPECT_FALSE(address_of("-1 7 b 0 0 0 0 0 0 0 0"));
  EXPECT_FALSE(address_of("1 7 " + std::string(sizeof address.host, 'b') + " 0 0 0 0 0 0 0 0"));
}

TEST(LineSocket, WordsAreCutOffALine) {
  std::string_view line = "hello 7 host b";
  EXPECT_EQ(word_of(line), "hello");
  EXPECT_EQ(number_of(word_of(line)), 7u);
  EXPECT_EQ(line, "host b");
  EXPECT_EQ(word_of(line), "host");
  EXPECT_EQ(word_of(line), "b");
  EXPECT_EQ(word_of(line), "") << "and none is left";
  for (const char* none : {"", "-1", "7x", "x7", " 7", "18446744073709551616"})
    EXPECT_FALSE(number_of(none)) << none;
}

/// A connection to itself: both ends.
class LineSockets : public testing::Test {
 protected:
  LineSockets() {
    const auto address = listen_anywhere(listener_);
    EXPECT_NE(address.port, 0);
    near_ = connect_to(address, milliseconds(3000));
    EXPECT_GE(near_, 0);
    EXPECT_TRUE(wait_for(listener_.get(), POLLIN, milliseconds(3000)));
    far_ = ::accept(listener_.get(), nullptr, nullptr);
  }
  ~LineSockets() override {
    for (const int one : {near_, far_})
      if (one >= 0) ::close(one);
  }
  Socket listener_;
  int near_ = -1, far_ = -1;
};

TEST_F(LineSockets, CarryLinesOneByOne) {
  write_line(near_, "hello 1");
  write_line(near_, "a text\nof two lines");
  write_line(near_, "");
  EXPECT_EQ(read_line(far_, milliseconds(3000)), "hello 1");
  EXPECT_EQ(read_line(far_, milliseconds(3000)), "a text of two lines") << "which stays one line";
  EXPECT_EQ(read_line(far_, milliseconds(3000)), "");
  EXPECT_FALSE(read_line(far_, milliseconds(50))) << "nothing comes";
}

TEST_F(LineSockets, ReadNoLineThatIsTooLongOrCutOff) {
  write_line(near_, std::string(300, 'x'));
  EXPECT_FALSE(read_line(far_, milliseconds(3000), 200));
  EXPECT_EQ(read_line(far_, milliseconds(3000), 200), std::string(100, 'x')) << "nothing behind it is lost";
  EXPECT_EQ(::send(near_, "cut", 3, MSG_NOSIGNAL), 3);
  { const Socket closed(std::exchange(near_, -1)); }
  EXPECT_FALSE(read_line(far_, milliseconds(3000)));
}

TEST_F(LineSockets, WritingToOneThatIsStuckOrGoneWaitsForNobody) {
  for (int line = 0; line < 20'000; ++line) write_line(near_, std::string(1000, 'x'));  // 20 MB
  EXPECT_EQ(read_line(far_, milliseconds(3000), 2000), std::string(1000, 'x'));
  { const Socket gone(std::exchange(far_, -1)); }
  for (int line = 0; line < 10; ++line) write_line(near_, "no signal ends this process");
}

TEST(LineSocket, ConnectsToNobodyWhoDoesNotListen) {
  Socket listener;
  const auto address = listen_anywhere(listener);
  listener.close();
  EXPECT_EQ(connect_to(address, milliseconds(500)), -1);
}

TEST(FirstLines, ArePassedOnWhileOthersAreSilent) {
  Socket listener;
  const auto address = listen_anywhere(listener, "", true);
  std::vector<int> silent(20);
  for (int& one : silent) one = connect_to(address, milliseconds(3000));
  const Socket cut(connect_to(address, milliseconds(3000))), speaks(connect_to(address, milliseconds(3000)));
  ASSERT_EQ(::send(cut.get(), "hel", 3, MSG_NOSIGNAL), 3);
  write_line(speaks.get(), "hello 1");
  write_line(speaks.get(), "at once");
  FirstLines lines(listener.get(), {.patience = milliseconds(300)});
  const auto first = lines.next(milliseconds(10'000));
  ASSERT_TRUE(first);
  const Socket arrived(first->socket);
  EXPECT_EQ(first->line, "hello 1");
  EXPECT_EQ(read_line(arrived.get(), milliseconds(3000)), "at once") << "nothing behind the line is taken";
  ASSERT_EQ(::send(cut.get(), "lo 2\nx", 6, MSG_NOSIGNAL), 6);
  const auto second = lines.next(milliseconds(10'000));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->line, "hello 2");
  const Socket also(second->socket);
  EXPECT_FALSE(lines.next(milliseconds(500)));
  for (const int one : silent) {
    char letter = 0;
    EXPECT_EQ(::recv(one, &letter, 1, 0), 0) << "its time is over";
    ::close(one);
  }
}

TEST(FirstLines, HaveABoundInNumberAndLength) {
  Socket listener;
  const auto address = listen_anywhere(listener, "", true);
  FirstLines lines(listener.get(), {.patience = milliseconds(60'000), .waiting = 4, .line = 100});
  const Socket endless(connect_to(address, milliseconds(3000)));
  write_line(endless.get(), std::string(100, 'x'));
  EXPECT_FALSE(lines.next(milliseconds(300)));
  std::vector<int> silent(10);
  for (int& one : silent) one = connect_to(address, milliseconds(3000));
  EXPECT_FALSE(lines.next(milliseconds(300)));
  char letter = 0;
  EXPECT_EQ(::recv(endless.get(), &letter, 1, 0), 0);
  int left = 0;
  for (const int one : silent) {
    left += ::recv(one, &letter, 1, MSG_DONTWAIT) == 0 ? 1 : 0;
    ::close(one);
  }
  EXPECT_EQ(left, 6) << "the oldest make room";
  int wake[2];
  ASSERT_EQ(::pipe(wake), 0);
  ASSERT_EQ(::write(wake[1], "e", 1), 1);
  EXPECT_FALSE(lines.next(milliseconds(600'000), wake[0])) << "woken";
  for (const int one : wake) ::close(one);
}

}  // namespace

// Network interfaces by name.

namespace {

TEST(Interface, HasAnAddress) {
  EXPECT_EQ(address_of_interface("lo"), "127.0.0.1");
  EXPECT_THAT(ipv4_addresses("lo"), testing::Contains(htonl(INADDR_LOOPBACK)));
  EXPECT_THAT(ipv4_addresses(""), testing::Not(testing::Contains(htonl(INADDR_LOOPBACK))));
}

TEST(Interface, ThatIsNotThereIsRefusedWithThoseThatAre) {
  try {
    (void)address_of_interface("ib7");
    FAIL() << "there is no such interface";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::comm);
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("--interface ib7"),
                                             testing::HasSubstr("it has "), testing::HasSubstr("lo")));
  }
  EXPECT_THAT(ipv4_addresses("ib7"), testing::IsEmpty());
}

TEST(Interface, IsAllThatASocketIsFoundAt) {
  Socket listener;
  auto address = listen_anywhere(listener, "lo");
  EXPECT_EQ(address.ipv4[0], htonl(INADDR_LOOPBACK));
  EXPECT_EQ(address.ipv4[1], 0u);
  const Socket connection(connect_to(address, std::chrono::milliseconds(1000)));
  EXPECT_GE(connection.get(), 0);
}

}  // namespace
}  // namespace paceline::comm
