#include "data/shards/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "../npz_files.h"
#include "base/file.h"
#include "data/loader.h"
#include "data/shards/shards.h"
#include "shard_files.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A folder of images with all three parts, of several kinds.
class Pack : public testing::Test {
 protected:
  Pack() {
    for (const auto& [part, count] : {std::pair{"train", 11}, {"val", 3}, {"test", 4}})
      for (const char* name : {"10", "9", "a b"})
        for (int i = 0; i < count; ++i)
          write_bytes(file(part, name, i),
                      i % 3 == 0 ? png(picture(20 + i, 30, i)) : jpeg(picture(40, 20 + i, i)));
  }
  [[nodiscard]] fs::path file(const std::string& part, const std::string& name, int i) const {
    return top() / "images" / part / name / (std::to_string(i) + (i % 3 == 0 ? ".png" : ".jpg"));
  }
  [[nodiscard]] const fs::path& top() const { return folder_.path(); }
  [[nodiscard]] std::string images() const { return "folder:" + (top() / "images").string(); }
  PackedShards pack(const std::string& spec, const std::string& name, PackingOptions options) const {
    auto packed = pack_shards(open(spec), top() / name, options, {}, [](auto, auto) {});
    EXPECT_TRUE(packed.has_value());
    return packed.value_or(PackedShards());
  }
  [[nodiscard]] std::string why_not(const std::string& spec, const std::string& name,
                                    PackingOptions options) const {
    try {
      (void)pack_shards(open(spec), top() / name, options, {}, [](auto, auto) {});
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  }
  TemporaryDirectory folder_;
};

/// Each sample's bytes and the name of its class, and how often they occur.
std::map<std::pair<Bytes, std::string>, int> samples_of(const Dataset& set, const Source& source) {
  std::map<std::pair<Bytes, std::string>, int> samples;
  Bytes buffer;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const auto bytes = set.encoded(i, buffer);
    ++samples[{Bytes(bytes.begin(), bytes.end()),
               source.class_names[static_cast<std::size_t>(set.label(i))]}];
  }
  return samples;
}

TEST_F(Pack, KeepsBytesClassesAndParts) {
  const auto source = open(images());
  for (const int shards : {1, 2, 7, 33}) {
    const auto packed = pack(images(), "packed" + std::to_string(shards), {.shards = shards, .threads = 3});
    EXPECT_EQ(packed.images, 54);
    const auto again = open(packed.spec);
    EXPECT_EQ(again.class_names, source.class_names);
    for (const auto& note : again.notes)
      EXPECT_THAT(note, testing::Not(HasSubstr("was made"))) << "its manifest";
    EXPECT_EQ(samples_of(*again.train, again), samples_of(*source.train, source));
    ASSERT_NE(again.validation, nullptr);
    EXPECT_EQ(samples_of(*again.validation, again), samples_of(*source.validation, source));
    EXPECT_EQ(samples_of(*again.test, again), samples_of(*source.test, source));
    const auto sizes = again.train->shard_sizes();
    ASSERT_EQ(sizes.size(), static_cast<std::size_t>(shards));
    EXPECT_LE(std::ranges::max(sizes) - std::ranges::min(sizes), 1);
  }
}

TEST_F(Pack, MixesClassesUnlessOrderIsKept) {
  const auto classes_of_first_shard = [&](const char* name, bool keeps) {
    const auto packed = pack(images(), name, {.shards = 3, .keeps_order = keeps});
    std::set<std::string> texts;
    for (const auto& text : list_shard(top() / name / "train-0000.tar", "").texts) texts.insert(text);
    return texts.size();
  };
  EXPECT_EQ(classes_of_first_shard("mixed", false), 3u);
  EXPECT_EQ(classes_of_first_shard("kept", true), 1u);
  const auto source = open(images()),
             kept = open("shards:" + (top() / "kept/train-{0000..0002}.tar").string());
  Bytes one, other;
  for (std::int64_t i = 0; i < source.train->size(); ++i) {
    const auto expected = source.train->encoded(i, one), got = kept.train->encoded(i, other);
    ASSERT_TRUE(std::ranges::equal(expected, got)) << i;
  }
}

TEST_F(Pack, WritesTheSameBytesAgain) {
  (void)pack(images(), "one", {.shards = 4, .threads = 1});
  (void)pack(images(), "two", {.shards = 4, .threads = 4});
  int files = 0;
  for (const auto& entry : fs::directory_iterator(top() / "one")) {
    if (entry.path().extension() == ".index") continue;  // has the files' times
    EXPECT_EQ(read_bytes(entry.path()), read_bytes(top() / "two" / entry.path().filename())) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 4 + 2 + 2 + 1);
}

TEST_F(Pack, WritesArraysAsPng) {
  std::vector<std::uint8_t> pixels(std::size_t{12} * 6 * 5 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 7 % 251);
  std::string batch;
  for (int i = 0; i < 4; ++i) batch += static_cast<char>(i) + std::string(3072, static_cast<char>(17 * i));
  for (int i = 1; i <= 5; ++i) write_bytes(top() / fmt::format("c/data_batch_{}.bin", i), bytes_of(batch));
  write_bytes(top() / "c/test_batch.bin", bytes_of(batch));
  const auto spec = "cifar10:" + (top() / "c").string();
  const auto packed = pack(spec, "arrays", {.shards = 3, .keeps_order = true});
  const auto source = open(spec), again = open(packed.spec);
  ASSERT_EQ(again.train->size(), source.train->size());
  EXPECT_EQ(again.class_names, source.class_names);
  EXPECT_EQ(again.mean, source.mean);
  EXPECT_EQ(again.stddev, source.stddev);
  EXPECT_EQ(again.train->format(), source.train->format());
  Bytes one(3072), other(3072);
  for (std::int64_t i = 0; i < source.train->size(); ++i) {
    EXPECT_EQ(again.train->read(i, one), source.train->read(i, other));
    ASSERT_EQ(one, other) << i;
  }
}

TEST_F(Pack, ScalesOnlyLargerImages) {
  const auto packed = pack(images(), "small", {.shards = 1, .keeps_order = true, .max_side = 30});
  const auto source = open(images()), again = open(packed.spec);
  ImageDecoder decoder;
  Bytes one, other;
  std::int64_t scaled = 0;
  for (const auto& [from, to] : {std::pair{source.train.get(), again.train.get()},
                                 std::pair{source.validation.get(), again.validation.get()},
                                 std::pair{source.test.get(), again.test.get()}})
    for (std::int64_t i = 0; i < from->size(); ++i) {
      const auto expected = from->encoded(i, one), got = to->encoded(i, other);
      const auto before = decoder.read_header(expected), after = decoder.read_header(got);
      const int longer = std::max(before.height, before.width);
      if (longer <= 30) {
        EXPECT_TRUE(std::ranges::equal(expected, got));
        continue;
      }
      ++scaled;
      EXPECT_EQ(after.kind, ImageKind::jpeg);
      EXPECT_EQ(std::max(after.height, after.width), 30);
      EXPECT_NEAR(after.width * longer, 30 * before.width, longer) << "its proportions";
    }
  EXPECT_GT(scaled, 0);
  EXPECT_EQ(packed.scaled, scaled);
}

TEST_F(Pack, LeavesNothingOfWhatFails) {
  const auto cut = file("train", "9", 1);
  auto bytes = read_bytes(cut);
  bytes.resize(bytes.size() / 2);
  write_bytes(cut, bytes);
  EXPECT_THAT(why_not(images(), "out", {.shards = 2}),
              testing::AllOf(HasSubstr(cut.string()), HasSubstr("--bad-images skip")));
  EXPECT_FALSE(fs::exists(top() / "out"));
  EXPECT_FALSE(fs::exists(top() / "out.paceline-partial"));
  const auto packed = pack_shards(open(images(), {.skip_bad_images = true}), top() / "out", {.shards = 2}, {},
                                  [](auto, auto) {});
  EXPECT_EQ(packed->images, 53);
}

TEST_F(Pack, RefusesMoreThanItsDiskHolds) {
  const auto hole = top() / "images/train/9/large.ppm";
  write_bytes(hole, {});
  constexpr std::int64_t kMuch = std::int64_t{1} << 40;
  std::error_code refusal;
  fs::resize_file(hole, static_cast<std::uintmax_t>(base::free_bytes(top()).value_or(0) + kMuch), refusal);
  if (refusal) GTEST_SKIP() << "this file system has no files with holes: " << refusal.message();
  EXPECT_THAT(why_not(images(), "out", {.shards = 2}),
              testing::AllOf(HasSubstr("the shards need about"), HasSubstr("make room")));
  EXPECT_FALSE(fs::exists(top() / "out"));
}

TEST_F(Pack, StopsWhereItIsAsked) {
  std::stop_source stop;
  const auto packed =
      pack_shards(open(images()), top() / "out", {.shards = 2}, stop.get_token(),
                  [&](std::int64_t done, auto) { done == 5 ? (void)stop.request_stop() : void(); });
  EXPECT_FALSE(packed.has_value());
  EXPECT_FALSE(fs::exists(top() / "out"));
  EXPECT_FALSE(fs::exists(top() / "out.paceline-partial"));
}

TEST_F(Pack, ReplacesWhatAKilledOneLeft) {
  write_bytes(top() / "out.paceline-partial/train-0007.tar", bytes_of("half"));
  (void)pack(images(), "out", {.shards = 2});
  EXPECT_FALSE(fs::exists(top() / "out/train-0007.tar"));
  EXPECT_FALSE(fs::exists(top() / "out.paceline-partial"));
}

TEST_F(Pack, RefusesWhatItCannotDo) {
  write_bytes(top() / "there/file", {});
  EXPECT_THAT(why_not(images(), "there", {}), HasSubstr("overwrites nothing"));
  EXPECT_THAT(why_not(images(), "no/such", {}), HasSubstr("no"));
  EXPECT_THAT(why_not(images(), "a,b", {}), HasSubstr("cannot hold ','"));
  EXPECT_THAT(why_not(images(), "out", {.shards = 34}), HasSubstr("write at most 33"));
  EXPECT_THAT(why_not("synthetic,train=10,test=5", "out", {}), HasSubstr("drawn"));
  for (const char* part : {"train", "val", "test"})
    fs::rename(top() / "images" / part / "a b", top() / "images" / part / "a\nb");
  EXPECT_THAT(why_not(images(), "out", {}), HasSubstr("line end"));
  EXPECT_FALSE(fs::exists(top() / "out"));
}

}  // namespace
}  // namespace paceline::data
