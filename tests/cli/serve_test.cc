/// The real program's server: who may ask it, and that it ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "../serve/client.h"
#include "program.h"
#include "serve/http_server.h"

namespace paceline::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The port and the token of a server, from the address that it prints.
std::pair<int, std::string> address_of(Program& server) {
  if (!server.wait_for("/?token=") || !server.wait_for("\n")) return {};
  const auto said = server.said();
  const auto token = said.find("/?token=");
  return {std::stoi(said.substr(said.rfind(':', token) + 1)),
          said.substr(token + 8, said.find('\n', token) - token - 8)};
}

TEST(ServeOfTheProgram, MakesATokenForAnyAddress) {
  if (!serve::has_http_server()) GTEST_SKIP() << "built without libcpp-httplib-dev";
  const Folder folder;
  for (const char* host : {"127.0.0.1", "0.0.0.0"}) {
    Program server({"serve", folder.path().string(), "--host", host, "--port", "0"}, {});
    const auto [port, token] = address_of(server);
    EXPECT_EQ(serve::status_of(serve::answer(port, "/")), 401) << host;
    EXPECT_EQ(serve::status_of(serve::answer(port, "/?token=" + token)), 200) << host;
    server.signal(SIGINT);
    const auto outcome = server.finish();
    EXPECT_EQ(outcome.code, 0);
    if (host == std::string("0.0.0.0")) {
      EXPECT_THAT(outcome.out, HasSubstr("nothing is encrypted"));
    }
  }
}

TEST(ServeOfTheProgram, ReadsTokensFromFiles) {
  if (!serve::has_http_server()) GTEST_SKIP() << "built without libcpp-httplib-dev";
  const Folder folder;
  const auto file = folder.write("token", "0123456789\n");
  const std::vector<std::string> words{"serve", folder.path().string(), "--port", "0", "--token-file", file};
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  EXPECT_THAT(run_program(words).err, HasSubstr("chmod 600"));
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  {
    Program server(words, {});
    ASSERT_TRUE(server.wait_for("/\n"));
    EXPECT_THAT(server.said(), Not(HasSubstr("0123456789"))) << "who gave it knows it";
  }
  const auto outcome =
      run_program({"serve", folder.path().string(), "--host", "0.0.0.0", "--port", "0", "--no-token"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--no-token"));
  for (const char* other : {"--token", "--token-file"})
    EXPECT_EQ(run_program({"serve", folder.path().string(), "--no-token", other, file}).code, 2) << other;
  EXPECT_EQ(run_program({"serve", folder.path().string()}, {.variables = {{"PACELINE_TOKEN", "short"}}}).code,
            2);
  const int port = free_port();
  Program open({"serve", folder.path().string(), "--no-token", "--port", std::to_string(port)}, {});
  ASSERT_TRUE(open.wait_for("/\n"));
  EXPECT_EQ(serve::status_of(serve::answer(port, "/")), 200);
  EXPECT_EQ(serve::status_of(serve::answer(port, "/", "Host: evil.example\r\n")), 403);
}

// A recursive expression of the HTTP library took three megabytes of stack for it.
TEST(ServeOfTheProgram, ALongRangeEndsNoServer) {
  if (!serve::has_http_server()) GTEST_SKIP() << "built without libcpp-httplib-dev";
  const Folder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_STACK, &before), 0);
  const rlimit small{std::min<rlim_t>(std::size_t{1} << 20, before.rlim_max), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_STACK, &small), 0);
  Program server({"serve", folder.path().string(), "--port", "0"}, {});
  ::setrlimit(RLIMIT_STACK, &before);
  const auto [port, token] = address_of(server);
  std::string range = "Range: bytes=0-";
  while (range.size() < 8000) range += ",0-";
  EXPECT_EQ(serve::status_of(serve::answer(port, "/metrics", "Host: x\r\n" + range + "\r\n")), 401);
  EXPECT_EQ(serve::status_of(serve::answer(port, "/?token=" + token, "Host: x\r\n" + range + "\r\n")), 200);
  server.signal(SIGTERM);
  EXPECT_EQ(server.finish().code, 0);
}

TEST(ServeOfTheProgram, EndsWhileAClientIsSlow) {
  if (!serve::has_http_server()) GTEST_SKIP() << "built without libcpp-httplib-dev";
  const Folder folder;
  Program server({"serve", folder.path().string(), "--port", "0"}, {});
  const auto [port, token] = address_of(server);
  serve::Client slow(port);
  slow.send("GET / HTTP/1.1\r\n");
  EXPECT_EQ(serve::status_of(serve::answer(port, "/?token=" + token)), 200);
  const auto begin = std::chrono::steady_clock::now();
  server.signal(SIGTERM);
  EXPECT_EQ(server.finish().code, 0);
  // It would have ten seconds for its request, and ends the server's wait otherwise.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

}  // namespace
}  // namespace paceline::cli
