#include "serve/access.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace paceline::serve {
namespace {

HttpRequest request(const std::string& host, const std::string& authorization = "",
                    const std::string& token = "") {
  HttpRequest asked{.path = "/", .host = host, .authorization = authorization};
  if (!token.empty()) asked.query["token"] = token;
  return asked;
}

TEST(Access, OnTheLoopbackNoOtherSitesPageAsks) {
  for (const char* own : {"127.0.0.1:8765", "localhost", "localhost:1", "[::1]:8765", "127.0.0.1"})
    EXPECT_EQ(refusal(request(own), ""), "") << own;
  // A name of an attacker's that was made to mean 127.0.0.1.
  for (const char* other :
       {"", "evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil", "[", "[::1"})
    EXPECT_NE(refusal(request(other), ""), "") << other;
}

TEST(Access, ElsewhereTheTokenIsNeeded) {
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
