#include "data/formats/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <thread>

#include "data/files.h"

namespace paceline::data {
namespace {

constexpr std::size_t kPixels = 3072;
constexpr std::size_t kClasses = 10;

struct Images {
  std::vector<std::uint8_t> pixels;  ///< [count][3072]
  std::vector<int> labels;
  [[nodiscard]] std::size_t count() const { return labels.size(); }
  [[nodiscard]] const std::uint8_t* image(std::size_t i) const { return pixels.data() + i * kPixels; }
};

Images read_first(const Dataset& dataset, std::int64_t count) {
  Images images;
  images.pixels.resize(static_cast<std::size_t>(count) * kPixels);
  for (std::int64_t i = 0; i < count; ++i)
    images.labels.push_back(
        dataset.read(i, std::span(images.pixels).subspan(static_cast<std::size_t>(i) * kPixels, kPixels)));
  return images;
}

/// FNV-1a over all bytes and labels.
std::uint64_t hash(const Images& images) {
  std::uint64_t value = 0xcbf29ce484222325u;
  const auto add = [&](std::uint64_t byte) { value = (value ^ byte) * 0x100000001b3u; };
  for (const auto pixel : images.pixels) add(pixel);
  for (const auto label : images.labels) add(static_cast<std::uint64_t>(label));
  return value;
}

/// Accuracy of the nearest class mean in a space of features.
template <typename Features>
double nearest_mean_accuracy(const Images& train, const Images& test, std::size_t features,
                             Features compute) {
  std::vector<std::vector<double>> means(kClasses, std::vector<double>(features));
  std::vector<double> counts(kClasses), values(features);
  for (std::size_t i = 0; i < train.count(); ++i) {
    const auto label = static_cast<std::size_t>(train.labels[i]);
    compute(train.image(i), values);
    for (std::size_t f = 0; f < features; ++f) means[label][f] += values[f];
    counts[label] += 1;
  }
  for (std::size_t c = 0; c < kClasses; ++c)
    for (auto& value : means[c]) value /= counts[c];
  int right = 0;
  for (std::size_t i = 0; i < test.count(); ++i) {
    compute(test.image(i), values);
    const auto distance = [&](const std::vector<double>& mean) {
      double sum = 0;
      for (std::size_t f = 0; f < features; ++f) sum += (values[f] - mean[f]) * (values[f] - mean[f]);
      return sum;
    };
    const auto nearest = std::min_element(
        means.begin(), means.end(), [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
    right += nearest - means.begin() == test.labels[i];
  }
  return right / static_cast<double>(test.count());
}

TEST(SyntheticCues, NameAClassByAnyTwoAndByNoneAlone) {
  std::set<std::array<int, 2>> shape_texture, shape_scheme, texture_scheme;
  std::array<int, 5> shapes{}, textures{}, schemes{};
  for (int label = 0; label < 10; ++label) {
    const Cues cues = cues_of_class(label);
    shape_texture.insert({cues.shape, cues.texture});
    shape_scheme.insert({cues.shape, cues.scheme});
    texture_scheme.insert({cues.texture, cues.scheme});
    ++shapes.at(static_cast<std::size_t>(cues.shape));
    ++textures.at(static_cast<std::size_t>(cues.texture));
    ++schemes.at(static_cast<std::size_t>(cues.scheme));
  }
  EXPECT_EQ(shape_texture.size(), 10u);
  EXPECT_EQ(shape_scheme.size(), 10u);
  EXPECT_EQ(texture_scheme.size(), 10u);
  for (const auto& counts : {shapes, textures, schemes}) EXPECT_THAT(counts, testing::Each(2));
}

TEST(Synthetic, HasTheSizesThatItIsToldAndSaysWhatItIs) {
  const Source usual = open("synthetic");
  EXPECT_EQ(usual.train->size(), 50000);
  EXPECT_EQ(usual.test->size(), 10000);
  EXPECT_EQ(usual.train->format(), (ImageFormat{.height = 32, .width = 32, .channels = 3}));
  EXPECT_TRUE(usual.synthetic);
  EXPECT_THAT(usual.description, testing::HasSubstr("synthetic data"));
  EXPECT_EQ(usual.classes(), 10);
  EXPECT_EQ(usual.resident_bytes, 0);
  EXPECT_EQ(std::set<std::string>(usual.class_names.begin(), usual.class_names.end()).size(), 10u);
  const Source small = open("synthetic,train=12,test=7,seed=3");
  EXPECT_EQ(small.train->size(), 12);
  EXPECT_EQ(small.test->size(), 7);
}

TEST(Synthetic, HasEveryClassOnceInEveryTenSamples) {
  const Source source = open("synthetic");
  Bytes pixels(kPixels);
  std::set<std::string> orders;
  for (std::int64_t block = 0; block < 100; ++block) {
    std::string order;
    for (std::int64_t i = 0; i < 10; ++i)
      order += static_cast<char>('0' + source.train->read(10 * block + i, pixels));
    orders.insert(order);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, "0123456789");
  }
  EXPECT_GT(orders.size(), 30u);  // of 40
}

TEST(Synthetic, HasOtherSizesAndClassesOnDemand) {
  const Source usual = open("synthetic"), large = open("synthetic,size=96,classes=25");
  const ImageFormat format{.height = 96, .width = 96, .channels = 3};
  EXPECT_EQ(large.train->format(), format);
  EXPECT_EQ(large.classes(), 25);
  EXPECT_EQ(std::set<std::string>(large.class_names.begin(), large.class_names.end()).size(), 25u);
  EXPECT_THAT(large.description, testing::HasSubstr("96x96x3, 25 labels for 10 kinds of pictures"));
  Bytes small(kPixels), pixels(static_cast<std::size_t>(format.bytes()));
  std::set<std::int32_t> labels;
  for (std::int64_t i = 0; i < 300; ++i) {
    const std::int32_t picture = usual.train->read(i, small), label = large.train->read(i, pixels);
    EXPECT_EQ(label % 10, picture);
    labels.insert(label);
    for (int at = 0; at < 96; at += 5)  // each drawn pixel is three wide and high
      ASSERT_EQ(pixels[static_cast<std::size_t>((at * 96 + at) * 3)],
                small[static_cast<std::size_t>((at / 3 * 32 + at / 3) * 3)]);
  }
  EXPECT_EQ(labels.size(), 25u);
  const Source few = open("synthetic,classes=3");
  for (std::int64_t i = 0; i < 30; ++i) EXPECT_LT(few.train->read(i, small), 3);
  EXPECT_THROW((void)open("synthetic,size=4"), base::Error);
}

// The bits that every machine must draw: figures of two machines are compared on the same images.
TEST(Synthetic, DrawsTheSameBitsEverywhere) {
  EXPECT_EQ(hash(read_first(*open("synthetic").train, 500)), 4291655194716892262u);
  EXPECT_EQ(hash(read_first(*open("synthetic").test, 500)), 12352614516038134372u);
}

TEST(Synthetic, DependsOnSeedPartAndIndexOnly) {
  const auto hash_of = [](const char* spec, bool test) {
    const Source source = open(spec);
    return hash(read_first(test ? *source.test : *source.train, 50));
  };
  EXPECT_EQ(hash_of("synthetic", false), hash_of("synthetic,train=50,test=1", false));  // not on the size
  EXPECT_EQ(hash_of("synthetic", true), hash_of("synthetic,train=7,test=60", true));
  EXPECT_NE(hash_of("synthetic", false), hash_of("synthetic,seed=1", false));
  EXPECT_NE(hash_of("synthetic", false), hash_of("synthetic", true));
  EXPECT_NE(hash_of("synthetic,seed=1", true), hash_of("synthetic", false));
}

TEST(Synthetic, IsReadByManyThreadsAtOnce) {
  const Source source = open("synthetic,train=200");
  const auto alone = hash(read_first(*source.train, 200));
  std::array<std::uint64_t, 4> hashes{};
  {
    std::vector<std::jthread> threads;
    for (auto& value : hashes) threads.emplace_back([&] { value = hash(read_first(*source.train, 200)); });
  }
  EXPECT_THAT(hashes, testing::Each(alone));
}

TEST(Synthetic, DrawsNoTestImageThatIsATrainingImage) {
  const Source source = open("synthetic,train=5000,test=5000");
  const Images train = read_first(*source.train, 5000), test = read_first(*source.test, 5000);
  std::set<std::string> seen;
  for (const Images* images : {&train, &test})
    for (std::size_t i = 0; i < images->count(); ++i)
      seen.emplace(reinterpret_cast<const char*>(images->image(i)), kPixels);
  EXPECT_EQ(seen.size(), 10000u);
}

TEST(Synthetic, HasTheNormalisationThatItDeclares) {
  const Source source = open("synthetic");
  const Images images = read_first(*source.train, 10000);
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0, sum_of_squares = 0;
    for (std::size_t i = c; i < images.pixels.size(); i += 3) {
      const double value = images.pixels[i] / 255.0;
      sum += value;
      sum_of_squares += value * value;
    }
    const double count = static_cast<double>(images.pixels.size()) / 3, mean = sum / count;
    EXPECT_NEAR(source.mean[c], mean, 0.003);
    EXPECT_NEAR(source.stddev[c], std::sqrt(sum_of_squares / count - mean * mean), 0.003);
  }
}

/// What simple rules get out of the images, where chance is 10 % and convolutional networks pass 90 %.
class SyntheticHints : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Source source = open("synthetic");
    train_ = new Images(read_first(*source.train, 10000));
    test_ = new Images(read_first(*source.test, 4000));
  }
  static void TearDownTestSuite() {
    delete train_;
    delete test_;
  }
  static Images* train_;
  static Images* test_;
};
Images* SyntheticHints::train_ = nullptr;
Images* SyntheticHints::test_ = nullptr;

TEST_F(SyntheticHints, NoPixelGivesTheClassAway) {
  double best = 0;
  for (std::size_t place = 0; place < 1024; place += 3)
    best = std::max(best,
                    nearest_mean_accuracy(*train_, *test_, 3, [&](const std::uint8_t* image, auto& values) {
                      for (std::size_t c = 0; c < 3; ++c) values[c] = image[3 * place + c];
                    }));
  RecordProperty("best_pixel_accuracy", std::to_string(best));
  EXPECT_LT(best, 0.18);
}

TEST_F(SyntheticHints, NoMeanColourGivesTheClassAway) {
  const double accuracy =
      nearest_mean_accuracy(*train_, *test_, 6, [](const std::uint8_t* image, std::vector<double>& values) {
        double sum[3] = {}, squares[3] = {};
        for (std::size_t i = 0; i < kPixels; ++i) {
          sum[i % 3] += image[i];
          squares[i % 3] += image[i] * image[i];
        }
        for (std::size_t c = 0; c < 3; ++c) {
          values[c] = sum[c] / 1024;
          values[3 + c] = std::sqrt(std::max(0.0, squares[c] / 1024 - values[c] * values[c]));
        }
      });
  RecordProperty("mean_colour_accuracy", std::to_string(accuracy));
  EXPECT_LT(accuracy, 0.30);
}

TEST_F(SyntheticHints, NoTemplateGivesTheClassAway) {
  const double accuracy = nearest_mean_accuracy(*train_, *test_, kPixels,
                                                [](const std::uint8_t* image, std::vector<double>& values) {
                                                  std::copy(image, image + kPixels, values.begin());
                                                });
  RecordProperty("class_mean_accuracy", std::to_string(accuracy));
  EXPECT_LT(accuracy, 0.30);
}

// Softmax regression on all pixels, by stochastic gradients: the best that one matrix can do, nearly.
TEST_F(SyntheticHints, NoLinearRuleReachesHalf) {
  std::vector<float> weight(kClasses * (kPixels + 1)), values(kPixels + 1);
  std::array<float, kClasses> scores{};
  const auto score = [&](const std::uint8_t* image) {
    for (std::size_t i = 0; i < kPixels; ++i) values[i] = (static_cast<float>(image[i]) - 96) / 43;
    values[kPixels] = 1;
    for (std::size_t c = 0; c < kClasses; ++c) {
      float sum[8] = {};  // eight sums: the compiler may then use vectors
      const float* row = weight.data() + c * (kPixels + 1);
      for (std::size_t i = 0; i < kPixels; i += 8)
        for (std::size_t j = 0; j < 8; ++j) sum[j] += row[i + j] * values[i + j];
      scores[c] = std::accumulate(sum, sum + 8, row[kPixels]);
    }
  };
  for (int epoch = 0; epoch < 4; ++epoch) {
    const float rate = epoch < 2 ? 3e-4f : 1e-4f;
    for (std::size_t i = 0; i < train_->count(); ++i) {
      score(train_->image(i));
      const float most = *std::max_element(scores.begin(), scores.end());
      float sum = 0;
      for (auto& s : scores) sum += s = std::exp(s - most);
      for (std::size_t c = 0; c < kClasses; ++c) {
        const float step =
            rate * ((static_cast<int>(c) == train_->labels[i] ? 1.0f : 0.0f) - scores[c] / sum);
        float* row = weight.data() + c * (kPixels + 1);
        for (std::size_t j = 0; j <= kPixels; ++j) row[j] += step * values[j];
      }
    }
  }
  int right = 0;
  for (std::size_t i = 0; i < test_->count(); ++i) {
    score(test_->image(i));
    right += std::max_element(scores.begin(), scores.end()) - scores.begin() == test_->labels[i];
  }
  const double accuracy = right / static_cast<double>(test_->count());
  RecordProperty("linear_accuracy", std::to_string(accuracy));
  EXPECT_GT(accuracy, 0.15);  // it learned something: the test looks at images, not at nothing
  EXPECT_LT(accuracy, 0.45);
}

}  // namespace
}  // namespace paceline::data
