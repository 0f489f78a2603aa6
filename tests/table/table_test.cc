/// The table form: digits stay, what is not known stays unknown, and every mistake in a file has its place.

#include "table/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace paceline::table {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    (void)read_table(text, "t.csv");
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

TEST(Number, KeepsItsDigitsAndHalfAUnitOfTheLast) {
  const struct {
    const char* text;
    double value, half;
  } cases[] = {{"100.0", 100, 0.05},
               {"125", 125, 0.5},
               {"0.80", 0.8, 0.005},
               {"1.2e+05", 1.2e5, 5000},
               {"1,234,567.5", 1234567.5, 0.05},
               {"3E-3", 0.003, 0.0005}};
  for (const auto& one : cases) {
    const auto number = read_number(one.text);
    ASSERT_TRUE(number) << one.text;
    EXPECT_DOUBLE_EQ(number->value, one.value) << one.text;
    EXPECT_NEAR(number->half_unit, one.half, 1e-12 * one.half) << one.text;
    EXPECT_EQ(number->text, one.text);
  }
  for (const char* const text :
       {"", "12 s", "1,23", "12,34,567", "nan", "inf", "0x10", "1e999", "--3", "1.2.3"})
    EXPECT_FALSE(read_number(text)) << text;
}

TEST(Table, ReadsFactsAboveTheHeaderAndACellWins) {
  const auto table = read_table(
      "# schema = \"paceline-table-1\"\n# workers = 4\n# model = \"resnet18\"  # a remark\n# a comment without a value\n"
      "run,workers,time_s,time_of,setting.precision\nn4,,100.0,epoch,bf16\nn1,1,\"1,200.5\",epoch,\n",
      "t.csv");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].value("workers"), 4);
  EXPECT_EQ(table.rows[1].value("workers"), 1);
  EXPECT_EQ(table.rows[0].text("model"), "resnet18");
  EXPECT_EQ(table.rows[0].number("time_s")->text, "100.0");
  EXPECT_EQ(table.rows[1].value("time_s"), 1200.5);
  EXPECT_EQ(table.rows[0].settings.at("precision"), "bf16");
  EXPECT_FALSE(table.rows[1].settings.contains("precision"));
  EXPECT_EQ(table.rows[1].line, 7U);
}

TEST(Table, UnknownIsAValueThatNoFactFills) {
  const auto table = read_table("# compute_s = 3\nrun,compute_s,time_s\na,unknown,5\nb,,5\n", "t.csv");
  EXPECT_FALSE(table.rows[0].knows("compute_s"));
  EXPECT_TRUE(table.rows[0].is_unknown("compute_s"));
  EXPECT_EQ(table.rows[1].value("compute_s"), 3);
  EXPECT_FALSE(table.rows[0].value("other_s"));
  EXPECT_FALSE(table.rows[0].is_unknown("other_s"));
}

TEST(Table, TomlSaysTheSameAndKeepsTheDigits) {
  const auto table = read_table(
      "schema = \"paceline-table-1\"\n[facts]\nmodel = \"resnet18\"\nsetting.precision = \"fp32\"\n[[row]]\nrun = \"n1\"\n"
      "workers = 1\ntime_s = 100.00\n[[row]]\nrun = \"n4\"\nworkers = 4\ntime_s = 1_25.0\nbaseline = \"n1\"\n",
      "t.toml");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].number("time_s")->text, "100.00");
  EXPECT_NEAR(table.rows[0].number("time_s")->half_unit, 0.005, 1e-15);
  EXPECT_EQ(table.rows[1].number("time_s")->text, "125.0");
  EXPECT_EQ(table.rows[1].settings.at("precision"), "fp32");
  EXPECT_EQ(table.rows[1].text("model"), "resnet18");
}

TEST(Table, SemicolonsAndTabsSeparateToo) {
  EXPECT_EQ(read_table("run;time_s\na;5\n", "t").rows[0].value("time_s"), 5);
  EXPECT_EQ(read_table("run\ttime_s\na\t5\n", "t").rows[0].value("time_s"), 5);
}

TEST(Table, MistakesHaveLineColumnAndTheNearestName) {
  EXPECT_THAT(error_of("run,time_ss\na,5\n"),
              AllOf(HasSubstr("t.csv:1:5"), HasSubstr("did you mean 'time_s'?")));
  EXPECT_THAT(error_of("run,time_s\na,5\nb,five\n"),
              AllOf(HasSubstr("t.csv:3:3"), HasSubstr("must be a number, but is 'five'")));
  EXPECT_THAT(error_of("run,time_of\na,epcoh\n"), AllOf(HasSubstr("t.csv:2:3"), HasSubstr("'epoch'")));
  EXPECT_THAT(error_of("run,accuracy\na,98.5\n"), AllOf(HasSubstr("t.csv:2:3"), HasSubstr("write 0.985")));
  EXPECT_THAT(error_of("run,workers\na,1.5\n"), HasSubstr("not a whole number"));
  EXPECT_THAT(error_of("run,time_s\na,-1\n"), HasSubstr("below 0"));
  EXPECT_THAT(error_of("run,time_s\na,5,6\n"), AllOf(HasSubstr("t.csv:2"), HasSubstr("3 cells")));
  EXPECT_THAT(error_of("run,run\na,a\n"), HasSubstr("twice"));
  EXPECT_THAT(error_of("run,baseline\nn4,n1\nn8,n4\n"),
              AllOf(HasSubstr("t.csv:2"), HasSubstr("'n1' is not a run")));
  EXPECT_THAT(error_of("run,time_s\n\"a,5\n"), AllOf(HasSubstr("t.csv:2:1"), HasSubstr("never closed")));
  EXPECT_THAT(error_of("run,time_s\n"), HasSubstr("no rows"));
  EXPECT_THAT(error_of("# schema = \"paceline-table-9\"\nrun\na\n"), HasSubstr("paceline-table-9"));
  EXPECT_THAT(error_of("[[row]]\nrun = \"a\"\ntime_ss = 5\n"),
              AllOf(HasSubstr("t.csv:3:1"), HasSubstr("time_s")));
  EXPECT_THAT(error_of("[[row]]\nrun = \n"), HasSubstr("t.csv:2"));
}

TEST(Table, IsWrittenAndReadAgain) {
  const auto table = read_table(
      "# model = \"a \"\"b\"\"\"\nrun,workers,time_s,time_of,compute_s,claim,setting.x\nn1,1,100.0,epoch,unknown,\"fast, \"\"very\"\"\",1\n"
      "n2,2,50.00,epoch,,,2\n",
      "t.csv");
  const auto again = read_table(to_csv(table), "u.csv");
  ASSERT_EQ(again.rows.size(), table.rows.size());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    for (std::size_t c = 0; c < Column::count(); ++c) {
      if (Column::at(c) == Column("model")) continue;
      EXPECT_EQ(again.rows[i].text(Column::at(c)), table.rows[i].text(Column::at(c))) << Column::at(c).name();
    }
    EXPECT_EQ(again.rows[i].settings, table.rows[i].settings);
  }
  EXPECT_TRUE(again.rows[0].is_unknown("compute_s"));
}

TEST(Table, TemplatesAreTables) {
  for (const auto& name : template_names()) {
    EXPECT_TRUE(looks_like_table(template_text(name))) << name;
    EXPECT_EQ(read_table(template_text(name), name).rows.size(), 2U);
  }
  EXPECT_THROW((void)template_text("scalng"), base::Error);
  EXPECT_FALSE(looks_like_table("{\"a\": 1}"));
  EXPECT_FALSE(looks_like_table("epoch,step,train_loss\n"));
}

TEST(Table, EveryTruncationIsReadOrRefused) {
  const auto text = template_text("accuracy");
  for (std::size_t n = 0; n < text.size(); ++n) {
    try {
      (void)read_table(text.substr(0, n), "t");
    } catch (const base::Error&) {
    }
  }
  const std::string toml = "[facts]\nmodel = \"a\"\n[[row]]\nrun = \"n1\"\ntime_s = 100.00\n";
  for (std::size_t n = 0; n < toml.size(); ++n) {
    try {
      (void)read_table(toml.substr(0, n), "t");
    } catch (const base::Error&) {
    }
  }
}

}  // namespace
}  // namespace paceline::table
