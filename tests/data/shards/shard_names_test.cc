#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../files.h"
#include "data/shards/shards.h"

namespace paceline::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ShardNames : public testing::Test {
 protected:
  ShardNames() {
    for (const char* name :
         {"t-08.tar", "t-09.tar", "t-10.tar", "a/t-0.tar", "b/t-0.tar", "a/t-1.tar", "b/t-1.tar"})
      write_bytes(folder_.path() / name, {1});
  }
  [[nodiscard]] std::vector<std::string> named(const std::string& pattern) const {
    std::vector<std::string> names;
    for (const auto& path : shard_paths((folder_.path() / pattern).string()))
      names.push_back(path.lexically_relative(folder_.path()).string());
    return names;
  }
  [[nodiscard]] Caught refused(const std::string& pattern) const {
    return error_of([&] { (void)named(pattern); });
  }

  TemporaryDirectory folder_;
};

TEST_F(ShardNames, CountWithTheDigitsOfTheirPattern) {
  EXPECT_THAT(named("t-{08..10}.tar"), ElementsAre("t-08.tar", "t-09.tar", "t-10.tar"));
}

TEST_F(ShardNames, TakeSeveralRangesTheLastFastest) {
  write_bytes(folder_.path() / "0/t-0.tar", {1});
  write_bytes(folder_.path() / "1/t-0.tar", {1});
  write_bytes(folder_.path() / "0/t-1.tar", {1});
  write_bytes(folder_.path() / "1/t-1.tar", {1});
  EXPECT_THAT(named("{0..1}/t-{0..1}.tar"), ElementsAre("0/t-0.tar", "0/t-1.tar", "1/t-0.tar", "1/t-1.tar"));
}

TEST_F(ShardNames, TakePatternsOfTheShell) {
  EXPECT_THAT(named("t-*.tar"), ElementsAre("t-08.tar", "t-09.tar", "t-10.tar"));
  EXPECT_THAT(named("?/t-{0..1}.tar"), ElementsAre("a/t-0.tar", "b/t-0.tar", "a/t-1.tar", "b/t-1.tar"));
  EXPECT_THAT(named("t-10.tar"), ElementsAre("t-10.tar"));
  const auto both =
      shard_paths((folder_.path() / "t-10.tar").string() + "::" + (folder_.path() / "a/*.tar").string());
  EXPECT_EQ(both.size(), 3u);
}

TEST_F(ShardNames, AreRefusedWithTheRule) {
  EXPECT_THAT(refused("t-{08..11}.tar").text, HasSubstr("t-11.tar is not there (1 of 4 are missing)"));
  EXPECT_THAT(refused("u-*.tar").text, HasSubstr("no file is called so"));
  for (const char* bad :
       {"t-{08..}.tar", "t-{..10}.tar", "t-{10..08}.tar", "t-{08}.tar", "t-{08..10.tar", "t-{a..c}.tar",
        "t-{0..18446744073709551615}.tar", "t-{0..99999999999999999999}.tar"}) {
    EXPECT_EQ(refused(bad).kind, base::ErrorKind::usage) << bad << " " << refused(bad).text;
  }
  EXPECT_THAT(refused("t-{0..999}{0..999}.tar").text, HasSubstr("more than 100000 files"));
  EXPECT_THAT(refused("t-{08..09}.tar::" + (folder_.path() / "t-*.tar").string()).text,
              HasSubstr("is named twice"));
  EXPECT_THAT(refused("a").text, HasSubstr("this is a folder; name the files in it"));
}

}  // namespace
}  // namespace paceline::data
