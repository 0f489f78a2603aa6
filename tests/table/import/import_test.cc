/// Files of other programs as tables: their figures, added up by hand; unknown is never 0; no truncation
/// crashes.

#include "table/import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <zlib.h>

#include <fmt/format.h>

#include <fstream>
#include <random>

#include "base/error.h"
#include "table/import/fixtures.h"
#include "table/import/trace_reader.h"

namespace paceline::table {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

class Import : public testing::Test {
 protected:
  Import() : folder_(fs::temp_directory_path() / fmt::format("paceline-import-{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Import() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  Table read(const std::string& text, const GivenFacts& given = {}) {
    const auto file = write("file", text);
    return import_files(std::vector{file}, given).front();
  }
  fs::path folder_;
};

/// As gzip writes it.
std::string packed(const std::string& text) {
  std::string all(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(all.data());
  stream.avail_out = static_cast<uInt>(all.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  all.resize(stream.total_out);
  deflateEnd(&stream);
  return all;
}

double parts(const Row& row) {
  double sum = 0;
  for (const Column column : {Column("compute_s"), Column("communication_s"), Column("data_wait_s"),
                              Column("update_s"), Column("other_s"), Column("not_attributed_s")})
    sum += row.value(column).value_or(0);
  return sum;
}

TEST_F(Import, NcclTextHasSizesTimesAndWrongElements) {
  const auto table = read(fixtures::nccl_text());
  ASSERT_EQ(table.rows.size(), 5U);
  const auto& first = table.rows[0];
  EXPECT_EQ(first.value("message_bytes"), 1024);
  EXPECT_NEAR(*first.value("time_s"), 12.5e-6, 1e-15);
  EXPECT_NEAR(first.number("time_s")->half_unit, 0.005e-6, 1e-15) << "the digits stay";
  EXPECT_EQ(first.value("workers"), 2);
  EXPECT_EQ(first.value("nodes"), 2);
  EXPECT_EQ(first.value("wrong_elements"), 0);
  EXPECT_FALSE(table.rows[1].knows("wrong_elements")) << "N/A is not 0";
  EXPECT_EQ(table.rows[2].value("wrong_elements"), 3);
  EXPECT_NEAR(*table.rows[3].value("time_s"), 110e-6, 1e-12);
  EXPECT_TRUE(first.is_unknown("spread_s"));
  EXPECT_TRUE(first.is_unknown("algorithm"));
  EXPECT_EQ(table.rows[4].text("run"), "average");
  EXPECT_EQ(table.rows[4].value("claimed_bandwidth"), 4.925);
  EXPECT_EQ(first.line, 10U);
}

TEST_F(Import, NcclJsonHasMediansOfTheSlowestProcessAndNoSecrets) {
  const auto table = read(fixtures::nccl_json());
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].value("claimed_bandwidth"), 9.986);
  EXPECT_EQ(table.rows[0].settings.at("collective"), "all_reduce");
  EXPECT_EQ(table.rows[0].value("warmup"), 5);
  EXPECT_NEAR(*table.rows[1].value("time_s"), 12.5e-6, 1e-12) << "of 11, 12, 13, 30";
  EXPECT_EQ(table.rows[1].value("repeats"), 4);
  EXPECT_THAT(to_csv(table), testing::Not(HasSubstr("SECRET")));
}

TEST_F(Import, NcclJsonOfProcessorTimesIsRefused) {
  auto text = fixtures::nccl_json();
  text.replace(text.find("\"time\": 840.0"), 13, "\"cpu_time\": 840.0");
  EXPECT_THROW((void)read(text), base::Error);
}

TEST_F(Import, DdpBenchmarkTellsTheFirstResultWithoutDdp) {
  const auto table = read(fixtures::ddp());
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].settings.at("ddp"), "no");
  EXPECT_EQ(table.rows[1].settings.at("ddp"), "yes");
  EXPECT_EQ(table.rows[2].value("workers"), 2);
  EXPECT_NEAR(*table.rows[2].value("time_s"), 0.111, 1e-9);
  EXPECT_EQ(table.rows[2].value("repeats"), 3);
  EXPECT_EQ(table.rows[2].value("local_batch"), 32);
  EXPECT_TRUE(table.rows[2].is_unknown("communication_s"));
}

TEST_F(Import, KinetoOfProcessorsHasOperatorsAndGloo) {
  const auto row = read(fixtures::kineto_of_host()).rows.front();
  EXPECT_NEAR(*row.value("time_s"), 1000e-6, 1e-12);
  EXPECT_NEAR(*row.value("compute_s"), 600e-6, 1e-12) << "operators within others count once";
  EXPECT_NEAR(*row.value("communication_s"), 200e-6, 1e-12);
  EXPECT_NEAR(*row.value("not_attributed_s"), 200e-6, 1e-12);
  EXPECT_EQ(row.text("clock"), "host");
  EXPECT_TRUE(row.is_unknown("other_s"));
  EXPECT_TRUE(row.is_unknown("data_wait_s"));
}

TEST_F(Import, KinetoAccountsForEachSecondOfAStep) {
  const auto table = read(fixtures::kineto(0, 2));
  ASSERT_EQ(table.rows.size(), 1U);
  const auto& row = table.rows[0];
  EXPECT_NEAR(*row.value("time_s"), 1000e-6, 1e-12);
  EXPECT_NEAR(*row.value("compute_s"), 400e-6, 1e-12);
  EXPECT_NEAR(*row.value("communication_s"), 200e-6, 1e-12) << "100 of 300 are hidden";
  EXPECT_NEAR(*row.value("other_s"), 50e-6, 1e-12);
  EXPECT_NEAR(*row.value("data_wait_s"), 150e-6, 1e-12);
  EXPECT_NEAR(*row.value("not_attributed_s"), 200e-6, 1e-12);
  EXPECT_NEAR(parts(row), *row.value("time_s"), 1e-12);
  EXPECT_EQ(row.value("message_bytes"), 4000);
  EXPECT_EQ(row.value("workers"), 2);
  EXPECT_EQ(row.text("device"), "Example GPU");
  EXPECT_EQ(row.text("communication_is"), "exposed");
  EXPECT_FALSE(row.knows("transfer_s")) << "with one rank nobody knows";
}

TEST_F(Import, KinetoKnowsTheBytesOfEachType) {
  for (const auto& [type, bytes] : {std::pair{"BFloat16", 2},
                                    {"Int8", 1},
                                    {"Byte", 1},
                                    {"Bool", 1},
                                    {"Short", 2},
                                    {"Int", 4},
                                    {"Long", 8},
                                    {"Double", 8}}) {
    auto text = fixtures::kineto(0, 2);
    constexpr std::string_view kFloat = "\"Float\"";
    for (auto at = text.find(kFloat); at != std::string::npos; at = text.find(kFloat))
      text.replace(at, kFloat.size(), fmt::format("\"{}\"", type));
    EXPECT_EQ(read(text).rows.front().value("message_bytes"), 1000 * bytes) << type;
  }
}

TEST_F(Import, KinetoOfAllRanksTellsWaitingFromTransfer) {
  const std::vector files{write("a", fixtures::kineto(0, 2, "rcclGenericKernel", 80)),
                          write("b", fixtures::kineto(1, 2))};
  const auto tables = import_files(files, {});
  ASSERT_EQ(tables.size(), 1U);
  ASSERT_EQ(tables[0].rows.size(), 2U);
  EXPECT_NEAR(*tables[0].rows[0].value("transfer_s"), 300e-6, 1e-12);
  EXPECT_NEAR(*tables[0].rows[0].value("late_peer_s"), 80e-6, 1e-12);
  EXPECT_NEAR(*tables[0].rows[1].value("late_peer_s"), 0, 1e-12);
}

TEST_F(Import, KinetoWithARenamedCollectiveSaysUnknownAndNotZero) {
  const auto named = read(fixtures::kineto(0, 2, "NCCLX_something", 0, false));
  EXPECT_NEAR(*named.rows[0].value("communication_s"), 200e-6, 1e-12)
      << "by the begin of its name, in any case";
  const auto renamed = read(fixtures::kineto(0, 2, "fancyAllReduce", 0, false));
  EXPECT_FALSE(renamed.rows[0].knows("communication_s"));
  EXPECT_TRUE(renamed.rows[0].is_unknown("communication_s"));
  EXPECT_THAT(renamed.notes,
              Contains(HasSubstr("no kernel is known to be a collective although 2 workers are named")));
  EXPECT_THAT(to_csv(renamed), HasSubstr("unknown"));
  const auto by_argument = read(fixtures::kineto(0, 2, "fancyAllReduce"));
  EXPECT_TRUE(by_argument.rows[0].knows("communication_s"));
}

TEST_F(Import, KinetoTellsTheUpdateByTheCallsThatLaunchedIt) {
  const auto table = read(fixtures::kineto_with_update());
  const auto& row = table.rows[0];
  EXPECT_NEAR(*row.value("compute_s"), 340e-6, 1e-12);
  EXPECT_NEAR(*row.value("update_s"), 50e-6, 1e-12) << "what does not run beside the model";
  EXPECT_NEAR(parts(row), *row.value("time_s"), 1e-12);
  const auto silent = read(fixtures::kineto_with_update(false));
  EXPECT_TRUE(silent.rows[0].is_unknown("update_s"));
  EXPECT_NEAR(*silent.rows[0].value("compute_s"), 390e-6, 1e-12);
  EXPECT_THAT(silent.notes, Contains(HasSubstr("an update, if there is one, is counted as compute")));
}

TEST_F(Import, KinetoIsReadPackedByGzip) {
  const auto plain = read(fixtures::kineto(0, 2)), unpacked = read(packed(fixtures::kineto(0, 2)));
  EXPECT_EQ(to_csv(plain), to_csv(unpacked));
  const auto whole = packed(fixtures::kineto(0, 2));
  const auto file = write("cut", whole);
  for (auto n = whole.size(); n-- > 0;) {
    fs::resize_file(file, n);
    EXPECT_THROW((void)import_files(std::vector{file}, {}), base::Error)
        << n << " of " << whole.size() << " bytes";
  }
}

/// Of three ranks with two groups: the k-th collective of each group is transfer as long as its shortest
/// stay.
TEST_F(Import, KinetoOfThreeRanksSharesEachCollectiveByItsNumber) {
  const auto trace = [](int rank, double first, double second) {
    std::string text = fmt::format(
        R"({{"schemaVersion": 1, "distributedInfo": {{"rank": {}, "world_size": 3}}, "traceEvents": [)",
        rank);
    const auto kernel = [&](double at, double us, const char* group) {
      text += fmt::format(
          R"({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "pid": 0, "tid": 7, "ts": {}, "dur": {}, "args": {{"Collective name": "allreduce", "Process Group Name": "{}"}}}},)",
          at, us, group);
    };
    kernel(1000, first, "0");
    kernel(2000, second, "0");
    kernel(3000, 70, "1");
    return text +
           R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 900, "dur": 3000}]})";
  };
  const std::vector files{write("a", trace(0, 100, 400)), write("b", trace(1, 300, 200)),
                          write("c", trace(2, 150, 250))};
  const auto table = import_files(files, {}).front();
  ASSERT_EQ(table.rows.size(), 3U);
  for (const auto& row : table.rows) {
    EXPECT_NEAR(*row.value("transfer_s"), (100 + 200 + 70) * 1e-6, 1e-12);
    EXPECT_NEAR(parts(row), *row.value("time_s"), 1e-12);
  }
  EXPECT_NEAR(*table.rows[0].value("late_peer_s"), 200e-6, 1e-12);
  EXPECT_NEAR(*table.rows[1].value("late_peer_s"), 200e-6, 1e-12);
  EXPECT_NEAR(*table.rows[2].value("late_peer_s"), 100e-6, 1e-12);
}

/// Two files of one rank, as a profiler writes them for two windows, are not two ranks.
TEST_F(Import, KinetoOfOneRankTwiceStaysApart) {
  const std::vector files{write("a", fixtures::kineto(0, 2, "ncclDevKernel", 80)),
                          write("b", fixtures::kineto(0, 2))};
  const auto table = import_files(files, {}).front();
  ASSERT_EQ(table.rows.size(), 2U);
  for (const auto& row : table.rows) {
    EXPECT_FALSE(row.knows("transfer_s"));
    EXPECT_FALSE(row.knows("late_peer_s"));
  }
  EXPECT_EQ(table.rows[1].value("repeat"), 2);
  EXPECT_THAT(table.notes, Contains(HasSubstr("rank 0 occurs 2 times (a, b); rank 1 of 2 is missing")));
}

TEST_F(Import, KinetoOfDifferentRunsIsNotJoined) {
  const auto notes_of = [&](const std::string& other) {
    const std::vector files{write("a", fixtures::kineto(0, 2)), write("b", other)};
    const auto table = import_files(files, {}).front();
    EXPECT_FALSE(table.rows[0].knows("transfer_s"));
    return table.notes;
  };
  auto later = fixtures::kineto(1, 2);
  later.replace(later.find("ProfilerStep#3"), 14, "ProfilerStep#1");
  EXPECT_THAT(notes_of(later),
              Contains(HasSubstr("different steps: 3 to 4 of rank 0, but 1 to 4 of rank 1")));
  later = fixtures::kineto(1, 2);
  later.replace(later.find("1700000000000000000"), 19, "1700003600000000000");
  EXPECT_THAT(notes_of(later), Contains(HasSubstr("b was not traced at the time of a")));
  EXPECT_THAT(notes_of(fixtures::kineto(1, 4)), Contains(HasSubstr("they name 2 and 4 workers")));
}

TEST_F(Import, HorovodTellsTransferFromWaiting) {
  for (const bool has_end : {true, false}) {
    const auto table = read(fixtures::horovod(has_end));
    ASSERT_EQ(table.rows.size(), 1U);
    const auto& row = table.rows[0];
    EXPECT_NEAR(*row.value("time_s"), 10000e-6, 1e-12);
    EXPECT_NEAR(*row.value("transfer_s"), 2000e-6, 1e-12);
    EXPECT_NEAR(*row.value("late_peer_s"), 500e-6, 1e-12);
    EXPECT_EQ(row.value("workers"), 2);
    EXPECT_EQ(row.value("message_bytes"), 4000);
    EXPECT_TRUE(row.is_unknown("compute_s"));
    EXPECT_EQ(row.text("communication_is"), "total");
  }
}

TEST_F(Import, MetricsAreMappedByTheirNames) {
  const auto table =
      read(fixtures::metrics(), {{"loss", "val_loss"}, {"accuracy", "val_acc"}, {"workers", "4"}});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[1].text("accuracy"), "0.6543");
  EXPECT_EQ(table.rows[1].text("loss"), "0.98");
  EXPECT_EQ(table.rows[1].value("workers"), 4);
  EXPECT_EQ(table.rows[1].settings.at("epoch"), "1");
  EXPECT_FALSE(table.rows[1].knows("time_s"));
  EXPECT_THROW((void)read(fixtures::metrics(), {{"loss", "val_los"}}), base::Error);
}

TEST_F(Import, GivenFactsFillWhatIsUnknownAndReplaceNothing) {
  const auto table =
      read(fixtures::ddp(),
           {{"workers", "64"}, {"scaling", "weak"}, {"setting.fabric", "x"}, {"compute_s", "0.05"}});
  EXPECT_EQ(table.rows[2].value("workers"), 2);
  EXPECT_EQ(table.rows[2].text("scaling"), "weak");
  EXPECT_EQ(table.rows[2].settings.at("fabric"), "x");
  EXPECT_EQ(table.rows[2].value("compute_s"), 0.05);
  EXPECT_THROW((void)read(fixtures::ddp(), {{"worker", "64"}}), base::Error);
}

TEST_F(Import, OfWhatIsNoneOfThemNamesThoseThatAre) {
  try {
    (void)read("hello\n");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("nccl-tests text"));
  }
}

TEST_F(Import, EveryKindIsReadPackedByGzipToo) {
  for (const auto& text : {fixtures::nccl_text(), fixtures::nccl_json(), fixtures::ddp(),
                           fixtures::kineto(0, 2), fixtures::horovod(), fixtures::metrics()}) {
    const auto plain = to_csv(read(text));
    EXPECT_EQ(to_csv(read(packed(text))), plain);
  }
}

TEST_F(Import, AGzipFileThatWasCutIsNamedAsOne) {
  const auto whole = packed(fixtures::nccl_text());
  try {
    (void)read(whole.substr(0, whole.size() - 12));
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the gzip data is damaged or cut"));
  }
}

/// Found by a fuzzer: what tells the file by its words saw a column that the header has not.
TEST_F(Import, MetricsWhoseHeaderHidesTheEpochInQuotesAreRefused) {
  try {
    (void)read("\"a, epoch ,b\",loss\n1,0.5\n");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("its header has no column 'epoch' or 'step'"));
  }
}

TEST(Rows, ASumOfDoublesIsWrittenWithTwelveDigits) {
  Row row;
  row.set("time_s", 0.1 + 0.2);
  EXPECT_EQ(row.text("time_s"), "0.3");
  row.set("time_s", 1.0 / 3);
  EXPECT_EQ(row.text("time_s"), "0.333333333333");
  row.set("time_s", 0.0125);
  EXPECT_EQ(row.text("time_s"), "0.0125");
}

/// Every truncation and many flipped bytes: read or refused, never a crash, and nothing unknown becomes 0.
TEST_F(Import, EveryTruncationAndFlipIsReadOrRefused) {
  std::mt19937 random(1);
  for (const auto& text :
       {fixtures::nccl_text(), fixtures::nccl_json(), fixtures::ddp(), fixtures::kineto(0, 2),
        fixtures::kineto_with_update(), fixtures::horovod(), fixtures::metrics(), fixtures::ddp_run(2),
        fixtures::kineto_of_host(), packed(fixtures::kineto(0, 2))}) {
    const auto try_file = [](const fs::path& changed) {
      try {
        for (const auto& row : import_files(std::vector{changed}, {}).front().rows) {
          if (row.knows("time_s")) {
            EXPECT_GT(*row.value("time_s"), 0);
          }
          if (row.knows("compute_s")) {
            EXPECT_GT(*row.value("compute_s"), 0);
          }
        }
      } catch (const base::Error&) {
      }
    };
    const auto file = write("cut", text);
    for (auto n = text.size(); n-- > 0;) {
      fs::resize_file(file, n);
      try_file(file);
    }
    for (int k = 0; k < 300; ++k) {
      auto changed = text;
      changed[random() % changed.size()] = static_cast<char>(random());
      try_file(write("file", changed));
    }
  }
}

TEST(Stretches, UniteCutAndShare) {
  const auto a = united({{5, 9}, {0, 2}, {1, 3}, {4, 4}, {8, 10}});
  EXPECT_EQ(a.size(), 2U);
  EXPECT_EQ(length(a), 8);
  const auto b = united({{2, 6}, {9, 20}});
  EXPECT_EQ(length(without(a, b)), 5);
  EXPECT_EQ(length(without(b, a)), 12);
  EXPECT_EQ(length(clipped(a, 1, 7)), 4);
  EXPECT_TRUE(without({}, a).empty());
}

}  // namespace
}  // namespace paceline::table
