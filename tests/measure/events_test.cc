#include "measure/events.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::measure {
namespace {

TEST(Events, AreReadAsTheyWereWritten) {
  Event event("step", 1234.5678);
  event.set("update", std::int64_t{7}).set("loss", 0.25).set("cell", "a \"b\"\n").set("is_best", true);
  event.set("missing", std::optional<double>()).set("broken", std::nan(""));
  const auto line = to_json(event);
  EXPECT_EQ(line,
            R"({"event":"step","at":1234.568,"update":7,"loss":0.25,"cell":"a \"b\"\n","is_best":true})");
  const auto read = event_from_json(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name(), "step");
  EXPECT_DOUBLE_EQ(read->at(), 1234.568);
  EXPECT_EQ(read->whole("update"), 7);
  EXPECT_EQ(read->number("update"), 7.0);
  EXPECT_EQ(read->number("loss"), 0.25);
  EXPECT_EQ(read->text("cell"), "a \"b\" ") << "what is read is shown: a line of text stays one";
  EXPECT_TRUE(read->is_true("is_best"));
  EXPECT_FALSE(read->number("cell"));
  EXPECT_FALSE(read->text("nothing"));
}

TEST(Events, NoLineThatIsNoneIsTakenForOne) {
  for (const char* line : {"", "{", R"({"event":"step","at":1,"loss":0.2)", "[1]", "7", "null",
                           R"({"event":7,"at":1})", R"({"event":"step"})", R"({"event":"step","at":"now"})"})
    EXPECT_FALSE(event_from_json(line)) << line;
  const auto odd = event_from_json(R"({"event":"later","at":1,"list":[1],"object":{},"none":null,"x":2})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->fields().size(), 1u);
}

}  // namespace
}  // namespace paceline::measure
