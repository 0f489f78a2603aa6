/// `data get` as a student meets it: what is said, and what is left, when a download goes wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "cli/program.h"
#include "data/get/get.h"
#include "data/get/server.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

TEST(DataGet, NamesWhatIsMissingAndTouchesNothing) {
  const Folder folder;
  const data::Server server;  // has none of the files
  const auto missing =
      run_program({"data", "get", "fashion-mnist", "--from", server.address(), "--cache", "c"},
                  {.directory = folder.path()});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("train-images-idx3-ubyte.gz could not be downloaded"),
                                 HasSubstr("404"), HasSubstr("--from")));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "c/fashion-mnist"));
  const auto unknown = run_program({"data", "get", "mnsit"}, {.directory = folder.path()});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'mnist'"));
  const auto elsewhere = run_program({"data", "get", "fruits-360"}, {.directory = folder.path()});
  EXPECT_EQ(elsewhere.code, 2);
  EXPECT_THAT(elsewhere.err, HasSubstr("train with --data folder:DIR"));
}

/// The set of fashion-mnist as this server gives it: the right lengths, zeros for bytes.
void give_lookalikes(data::Server& server, const std::vector<data::Behaviour>& behaviours = {{}}) {
  for (const auto& package : data::packages())
    if (package.name == "fashion-mnist")
      for (const auto& file : package.files)
        server.give(file.name, std::string(static_cast<std::size_t>(file.bytes), '\0'), behaviours);
}

Outcome get_fashion(const data::Server& server, RunConditions circumstances, const std::string& cache = "c") {
  return run_program({"data", "get", "fashion-mnist", "--from", server.address(), "--cache", cache},
                     circumstances);
}

TEST(DataGet, ThrowsAwayWhatHasTheRightLengthAndTheWrongSum) {
  const Folder folder;
  data::Server server;
  give_lookalikes(server, {{.break_after = 1000}, {}});  // and the transfer breaks, once
  const auto outcome = get_fashion(server, {.directory = folder.path()});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("train-images-idx3-ubyte.gz: "));
  EXPECT_THAT(outcome.err, HasSubstr("; again in 1 s"));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("of 26.4 MB"), HasSubstr("its SHA-256 is "),
                                 HasSubstr("that of the publisher's file is 3aede38d"),
                                 HasSubstr("was deleted"), HasSubstr("login page")));
  EXPECT_THAT(server.requests(), Contains("/train-images-idx3-ubyte.gz from 1000"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "c/fashion-mnist"));
}

TEST(DataGet, SaysThatTheDiskIsFullAndGoesOnOnceItIsNot) {
  const Folder folder;
  data::Server server;
  give_lookalikes(server);
  const auto full = get_fashion(server, {.directory = folder.path(), .largest_file = 100000});
  EXPECT_EQ(full.code, 3);
  EXPECT_THAT(full.err, AllOf(HasSubstr("train-images-idx3-ubyte.gz.part: cannot be written: File too large"),
                              HasSubstr("is the disk full")));
  EXPECT_EQ(server.requests().size(), 1u) << "a full disk is no reason to ask the server again";
  (void)get_fashion(server, {.directory = folder.path()});
  EXPECT_THAT(server.requests(), Contains("/train-images-idx3-ubyte.gz from 100000"));
}

TEST(DataGet, SaysWhereItMayNotWrite) {
  const Folder folder;
  const data::Server server;
  folder.write("file", "no folder");
  const auto outcome = get_fashion(server, {.directory = folder.path()}, "file/c");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("file/c/downloads/fashion-mnist: cannot be made: Not a directory"),
                                 HasSubstr("give another folder with --cache")));
  EXPECT_TRUE(server.requests().empty());
}

TEST(DataGet, InterruptedKeepsWhatHasComeAndGoesOn) {
  const Folder folder;
  data::Server server;
  give_lookalikes(server, {{.break_after = 1 << 20}, {.silent = true}});
  Program program({"data", "get", "fashion-mnist", "--from", server.address(), "--cache", "c"},
                  {.directory = folder.path()});
  ASSERT_TRUE(program.wait_for("of 26.4 MB"));
  while (server.requests().size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  program.signal(SIGINT);
  const auto stopped = program.finish();
  EXPECT_EQ(stopped.code, 130);
  EXPECT_THAT(stopped.err, HasSubstr("stopped; the same command continues where this one stopped"));
  give_lookalikes(server);
  (void)get_fashion(server, {.directory = folder.path()});
  EXPECT_THAT(server.requests(), Contains("/train-images-idx3-ubyte.gz from 1048576"));
}

TEST(DataGet, RefusesAnotherContent) {
  const Folder folder;
  data::Server server;
  server.give("cifar-10-binary.tar.gz", "this is no archive");
  const auto outcome = run_program({"data", "get", "cifar10", "--from", server.address(), "--cache", "c"},
                                   {.directory = folder.path()});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("the server gave 18 bytes of a file of 170052171"));
}

}  // namespace
}  // namespace paceline::cli
