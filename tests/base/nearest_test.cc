#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::base {
namespace {

const std::vector<std::string> kNames{"resnet18", "resnet18-cifar", "mnist-cnn", "momentum", "lr"};

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(nearest_name("resnet-18", kNames), "resnet18");
  EXPECT_EQ(nearest_name("resnet18_cifar", kNames), "resnet18-cifar");
  EXPECT_EQ(nearest_name("mnistcnn", kNames), "mnist-cnn");
  EXPECT_EQ(nearest_name("momnetum", kNames), "momentum");  // two neighbours swapped
  EXPECT_EQ(nearest_name("rl", kNames), "lr");
  EXPECT_EQ(nearest_name("momentum", kNames), "momentum");
}

TEST(Nearest, TakesABeginningForTheNameThatAloneBeginsSo) {
  EXPECT_EQ(nearest_name("mom", kNames), "momentum");
  EXPECT_EQ(nearest_name("res", kNames), std::nullopt);  // two begin so
  EXPECT_EQ(nearest_name("mn", kNames), std::nullopt);   // too short to say anything
}

TEST(Nearest, DoesNotGuessWhenNothingIsClose) {
  EXPECT_EQ(nearest_name("transformer", kNames), std::nullopt);
  EXPECT_EQ(nearest_name("", kNames), std::nullopt);
  EXPECT_EQ(nearest_name("x", {}), std::nullopt);
}

TEST(Nearest, SuggestsTheNameOrListsAll) {
  EXPECT_EQ(suggestion("momentun", kNames), "; did you mean 'momentum'?");
  EXPECT_EQ(suggestion("transformer", kNames),
            "; known are resnet18, resnet18-cifar, mnist-cnn, momentum, lr");
}

}  // namespace
}  // namespace paceline::base
