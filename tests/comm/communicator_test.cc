#include "comm/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "comm/make.h"

namespace paceline::comm {
namespace {

/// What each rank gets whose text is texts[rank].
std::vector<std::vector<std::string>> gathered(const std::vector<std::string>& texts, bool at_first) {
  auto communicators = make_local(static_cast<int>(texts.size()));
  std::vector<std::vector<std::string>> all(texts.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    threads.emplace_back([&, rank] {
      auto& ranks = *communicators[rank];
      all[rank] =
          at_first ? gather_at_first(ranks, texts[rank]) : gather_values(ranks, ranks.size(), texts[rank]);
    });
  threads.clear();
  return all;
}

TEST(Communicator, GathersTextsOfAnyLength) {
  for (const auto& texts :
       {std::vector<std::string>{"a"}, {"", ""}, {"one", "", std::string("with\0zero", 9), "x"}}) {
    EXPECT_THAT(gathered(texts, false), testing::Each(texts));
    const auto at_first = gathered(texts, true);
    EXPECT_EQ(at_first.front(), texts);
    for (std::size_t rank = 1; rank < texts.size(); ++rank) EXPECT_THAT(at_first[rank], testing::IsEmpty());
  }
}

}  // namespace
}  // namespace paceline::comm
