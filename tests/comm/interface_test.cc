/// Network interfaces by name.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/interface.h"
#include "comm/line_socket.h"

namespace paceline::comm {
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
  int listener = -1;
  auto address = listen_anywhere(listener, "lo");
  const Socket owned(listener);
  EXPECT_EQ(address.ipv4[0], htonl(INADDR_LOOPBACK));
  EXPECT_EQ(address.ipv4[1], 0u);
  const Socket connection(connect_to(address, std::chrono::milliseconds(1000)));
  EXPECT_GE(connection.get(), 0);
}

}  // namespace
}  // namespace paceline::comm
