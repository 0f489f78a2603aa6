#include "base/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace paceline::base {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Point {
  double x = 0;
  int y = 0;
};

struct Shape {
  std::string name;
  std::vector<Point> points;
  std::vector<std::optional<std::string>> labels;
  std::optional<Point> centre;
  std::optional<std::vector<double>> weights;
  std::map<std::string, std::vector<int>> sides;
};
template <typename A>
void fields(A& archive, In<A, Shape>& value) {
  archive("name", value.name);
  archive("points", value.points);
  archive("labels", value.labels);
  archive("centre", value.centre);
  archive("weights", value.weights);
  archive("sides", value.sides);
}

Shape there_and_back(const Shape& shape) { return from_bytes<Shape>(to_bytes(shape)); }

TEST(Archive, KeepsEveryMember) {
  const auto back = there_and_back({.name = std::string("a\0b", 3),
                                    .points = {{.x = 0.1, .y = -1}, {.x = 1e300, .y = 7}},
                                    .labels = {"", std::nullopt, "second"},
                                    .centre = Point{.x = -0.5, .y = 3},
                                    .weights = std::vector<double>{0.25},
                                    .sides = {{"", {}}, {"short", {3, 4}}}});
  EXPECT_EQ(back.name, std::string("a\0b", 3));
  ASSERT_EQ(back.points.size(), 2U);
  EXPECT_EQ(back.points[0].x, 0.1);
  EXPECT_EQ(back.points[1].y, 7);
  EXPECT_THAT(back.labels, ElementsAre("", std::nullopt, "second"));
  EXPECT_EQ(back.centre->y, 3);
  EXPECT_THAT(*back.weights, ElementsAre(0.25));
  EXPECT_EQ(back.sides.size(), 2U);
  EXPECT_THAT(back.sides.at("short"), ElementsAre(3, 4));
}

TEST(Archive, TellsEmptyFromAbsent) {
  EXPECT_FALSE(there_and_back({}).weights.has_value());
  EXPECT_FALSE(there_and_back({}).centre.has_value());
  EXPECT_THAT(*there_and_back({.weights = std::vector<double>{}}).weights, IsEmpty());
}

TEST(Archive, RefusesBytesOfSomethingElse) {
  const auto bytes = to_bytes(Shape{.name = "triangle", .points = {{}, {}, {}}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW((void)from_bytes<Shape>(std::string_view(bytes).substr(0, size)), Error) << size;
  EXPECT_THROW((void)from_bytes<Shape>(bytes + '\0'), Error);
  const auto endless = to_bytes(std::numeric_limits<std::uint64_t>::max());
  EXPECT_THROW((void)from_bytes<std::string>(endless), Error);
}

}  // namespace
}  // namespace paceline::base
