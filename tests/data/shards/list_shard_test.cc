#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../mutations.h"
#include "data/shards/shards.h"
#include "shard_files.h"

namespace paceline::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ListShard : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path file() const { return folder_.path() / "s.tar"; }
  [[nodiscard]] ShardIndex listed(const Members& members, const std::string& field = "") const {
    write_tar(file(), members);
    return list_shard(file(), field);
  }
  [[nodiscard]] std::string refused(const Members& members, const std::string& field = "") const {
    const auto caught = error_of([&] { (void)listed(members, field); });
    EXPECT_EQ(caught.kind, base::ErrorKind::data) << caught.text;
    EXPECT_THAT(caught.text, HasSubstr(file().string()));
    return caught.text;
  }
  /// The labels of all samples, and whether their images are those of `members`.
  static std::vector<std::string> labels(const ShardIndex& index) {
    std::vector<std::string> texts;
    for (const auto label : index.labels) texts.push_back(index.texts[label]);
    return texts;
  }
  [[nodiscard]] std::vector<Bytes> images(const ShardIndex& index) const {
    const auto whole = read_bytes(file());
    std::vector<Bytes> images;
    for (const auto& [block, bytes] : index.members) {
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(512 * std::size_t{block});
      images.emplace_back(begin, begin + bytes);
    }
    return images;
  }

  const Bytes one_ = numbered_picture(1), two_ = numbered_picture(2);
  TemporaryDirectory folder_;
};

TEST_F(ListShard, FindsImagesAndLabelsOfTheirKeys) {
  const auto index = listed(
      {{"b.jpg", one_}, {"b.cls", bytes_of("7\n")}, {"d/a.cls", bytes_of(" a cat ")}, {"d/a.PNG", two_}});
  EXPECT_THAT(labels(index), ElementsAre("7", "a cat"));
  EXPECT_THAT(images(index), ElementsAre(one_, two_));
  EXPECT_EQ(index.shards.front().samples, 2);
  EXPECT_EQ(index.shards.front().others, 0);
}

TEST_F(ListShard, CutsKeysAtTheFirstDot) {
  const auto index = listed({{"v1.2/a.png", one_},
                             {"v1.2/a.seg.png", two_},
                             {"v1.2/a.cls", bytes_of("0")},
                             {"v1.2/a.json", bytes_of("{}")},
                             {"v1.2/._a.png", two_},
                             {"README", two_}});
  EXPECT_THAT(images(index), ElementsAre(one_));
  EXPECT_EQ(index.shards.front().others, 4) << "the mask, the table, what a Mac adds, and the text";
}

TEST_F(ListShard, ReadsTheNamedFieldOfJson) {
  const Members members{{"a.jpg", one_},
                        {"a.json", bytes_of(R"({"label": 3, "name": "cat"})")},
                        {"b.jpg", two_},
                        {"b.json", bytes_of(R"({"name": "dog", "label": 4})")},
                        {"a.cls", bytes_of("9")}};
  EXPECT_THAT(labels(listed(members, "label")), ElementsAre("3", "4"));
  EXPECT_THAT(labels(listed(members, "name")), ElementsAre("cat", "dog"));
  EXPECT_THAT(refused(members, "kind"), HasSubstr("'a.json' is no JSON object with a field 'kind'"));
  EXPECT_THAT(refused({{"a.jpg", one_}, {"a.json", bytes_of(R"({"label": [1]})")}}, "label"),
              HasSubstr("is neither a whole number nor a text"));
  EXPECT_THAT(refused({{"a.jpg", one_}, {"a.json", bytes_of(std::string(100'000, '['))}}, "label"),
              HasSubstr("is no JSON object"));
}

TEST_F(ListShard, RefusesWhatIsNoWholeSample) {
  const auto label = bytes_of("1");
  EXPECT_THAT(refused({{"a.jpg", one_}, {"a.cls", label}, {"b.jpg", two_}}),
              HasSubstr("the image 'b.jpg' has no label b.cls; write one, or remove it"));
  EXPECT_THAT(refused({{"a.jpg", one_}, {"a.json", bytes_of("{}")}}),
              HasSubstr("its .json may have one: label=FIELD"));
  EXPECT_THAT(refused({{"a.jpg", one_}, {"a.cls", label}, {"b.cls", label}}),
              HasSubstr("the label 'b.cls' has no image"));
  EXPECT_THAT(refused({{"a.jpg", one_}, {"a.cls", label}, {"a.jpg", two_}}),
              HasSubstr("a key has two images, 'a.jpg' and 'a.jpg'"));
  EXPECT_THAT(refused({{"a.jpg", one_}, {"a.cls", label}, {"a.cls", label}}),
              HasSubstr("a key has two labels"));
  EXPECT_THAT(refused({{"a.jpg", one_}, {"a.cls", label}, {"a.png", two_}}),
              HasSubstr("'a.jpg' and 'a.png'"));
  EXPECT_THAT(refused({{"a.jpg", one_}, {"a.cls", bytes_of(" \n")}}),
              HasSubstr("the label in 'a.cls' is empty"));
  EXPECT_THAT(refused({{"a.jpg", one_}, {"a.cls", {0, 1, 255}}}),
              HasSubstr("is no number and no name of a class"));
  EXPECT_THAT(refused({{"a.txt", label}}), HasSubstr("holds no sample KEY.jpg with KEY.cls"));
  EXPECT_THAT(refused({}), HasSubstr("holds no sample"));
}

// libarchive takes an archive that ends between two members for a whole one, and does not look behind its
// end.
TEST_F(ListShard, RefusesShardsCutShortOrJoined) {
  write_tar(file(), numbered_samples(0, 3));
  const auto whole = read_bytes(file());
  auto joined = whole;
  joined.insert(joined.end(), whole.begin(), whole.end());
  write_bytes(file(), joined);
  EXPECT_THAT(error_of([&] { (void)list_shard(file(), ""); }).text, HasSubstr("goes on after its end mark"));
  const std::size_t member = 1024;  // header and data of each
  write_bytes(file(), Bytes(whole.begin(), whole.begin() + 4 * member));
  EXPECT_THAT(error_of([&] { (void)list_shard(file(), ""); }).text,
              HasSubstr("has no end mark, so it was cut short"));
}

TEST_F(ListShard, LosesNoSampleOfDamagedShards) {
  constexpr int kSamples = 3;
  write_tar(file(), numbered_samples(0, kSamples));
  int refused = 0, whole = 0;
  read_mutations(read_bytes(file()), [&](const Bytes& bytes) {
    write_bytes(file(), bytes);
    ++refused;
    const auto index = list_shard(file(), "");
    --refused;
    ++whole;
    EXPECT_EQ(index.members.size(), kSamples);
    for (const auto& [block, length] : index.members)
      EXPECT_LE(512 * std::size_t{block} + length, bytes.size());
  });
  EXPECT_GT(refused, 100);
  EXPECT_GT(whole, 10) << "zeros at the end are more than are needed, and pictures may change";
}

}  // namespace
}  // namespace paceline::data
