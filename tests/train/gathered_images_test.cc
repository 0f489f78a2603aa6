// The images that a device gathers out of its own are, bit for bit, those that the host prepares.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "data/augment.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/kernels/host.h"
#include "engine/cuda/kernels/table.h"

namespace paceline::train {
namespace {

using base::SampleDraw;
using data::Augment;
using data::AugmentOptions;
using data::CropFill;
using data::Flip;
using data::ImageFormat;
using engine::cuda::Bf16;
using engine::cuda::GatherImages;

/// Seven stored images of random bytes, 0 and 255 among them.
class Stored {
 public:
  static constexpr int kImages = 7;
  explicit Stored(const ImageFormat& format)
      : image_(static_cast<std::size_t>(format.bytes())), pixels_(kImages * image_) {
    std::mt19937 generator(3);
    for (auto& pixel : pixels_) pixel = static_cast<std::uint8_t>(generator());
    pixels_.front() = 0;
    pixels_.back() = 255;
  }
  [[nodiscard]] const std::uint8_t* data() const { return pixels_.data(); }
  [[nodiscard]] std::span<const std::uint8_t> image(std::int64_t index) const {
    return std::span(pixels_).subspan(static_cast<std::size_t>(index) * image_, image_);
  }

 private:
  std::size_t image_;
  std::vector<std::uint8_t> pixels_;
};

/// What the kernel makes of `draws` in a batch of one sample more, which it must fill with zeros.
template <typename T>
std::vector<T> gathered(const ImageFormat& format, const Stored& stored, const Augment& augment,
                        const std::vector<SampleDraw>& draws, engine::cuda::HostOrder order) {
  const int padded = engine::cuda::padded_channels(format.channels), samples = static_cast<int>(draws.size());
  const std::int64_t pixels = std::int64_t{1} * (samples + 1) * format.height * format.width;
  std::vector<T> dst(static_cast<std::size_t>(pixels * padded));
  std::memset(dst.data(), 0xff, dst.size() * sizeof(T));
  const GatherImages<T> kernel{.stored = stored.data(),
                               .byte_values = augment.byte_values().data(),
                               .draws = draws.data(),
                               .dst = dst.data(),
                               .pixels = pixels,
                               .samples = samples,
                               .height = format.height,
                               .width = format.width,
                               .channels = format.channels,
                               .padded = padded};
  engine::cuda::run_on_host(engine::cuda::kKernelNumber<GatherImages<T>>, &kernel, kernel.grid(), order);
  return dst;
}

/// The host's `images` [samples][H][W][C] as a layer reads them, and the sample of zeros behind them.
template <typename T>
std::vector<T> as_stored(const ImageFormat& format, const std::vector<float>& images) {
  const int padded = engine::cuda::padded_channels(format.channels);
  const auto channels = static_cast<std::size_t>(format.channels);
  const auto area = static_cast<std::size_t>(format.height) * static_cast<std::size_t>(format.width);
  const std::size_t pixels = images.size() / channels;
  std::vector<T> dst((pixels + area) * static_cast<std::size_t>(padded), T{});
  for (std::size_t pixel = 0; pixel < pixels; ++pixel)
    for (std::size_t c = 0; c < channels; ++c)
      engine::cuda::store(images[pixel * channels + c], dst[pixel * static_cast<std::size_t>(padded) + c]);
  return dst;
}

template <typename T>
void expect_same_bits(const ImageFormat& format, const Stored& stored, const Augment& augment,
                      const std::vector<SampleDraw>& draws, const std::vector<float>& images) {
  const auto want = as_stored<T>(format, images);
  for (const auto order : {engine::cuda::HostOrder::ascending, engine::cuda::HostOrder::descending}) {
    const auto got = gathered<T>(format, stored, augment, draws, order);
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(T)), 0) << sizeof(T) << " bytes";
  }
}

class Gathered : public testing::TestWithParam<ImageFormat> {
 protected:
  [[nodiscard]] static AugmentOptions options(int padding, Flip flip, CropFill fill) {
    const auto channels = static_cast<std::size_t>(GetParam().channels);
    AugmentOptions options{.crop_padding = padding, .flip = flip, .seed = 11, .crop_fill = fill};
    for (std::size_t c = 0; c < channels; ++c) {  // each channel has a table of its own
      options.mean.push_back(0.4f + 0.03f * static_cast<float>(c));
      options.stddev.push_back(0.25f + 0.02f * static_cast<float>(c));
    }
    return options;
  }
  [[nodiscard]] static std::vector<int> paddings(CropFill fill) {
    const int least = std::min(GetParam().height, GetParam().width);
    std::vector<int> all = {0};
    for (const int padding : {1, 4, least - 1, least, 2 * least})
      if (padding > all.back() && (fill == CropFill::black || padding < least)) all.push_back(padding);
    return all;
  }
  static void expect_both(const Stored& stored, const Augment& augment, const std::vector<SampleDraw>& draws,
                          const std::vector<float>& images) {
    expect_same_bits<float>(GetParam(), stored, augment, draws, images);
    expect_same_bits<Bf16>(GetParam(), stored, augment, draws, images);
  }
};

TEST_P(Gathered, AreTheTrainingFormsForAnyCropFlipAndFill) {
  const Stored stored(GetParam());
  const auto values = static_cast<std::size_t>(GetParam().bytes());
  for (const CropFill fill : {CropFill::black, CropFill::reflect})
    for (const Flip flip : {Flip::none, Flip::random, Flip::alternating})
      for (const int padding : paddings(fill)) {
        SCOPED_TRACE(testing::Message() << "padding " << padding << ", flip " << static_cast<int>(flip)
                                        << ", fill " << static_cast<int>(fill));
        const Augment augment(GetParam(), options(padding, flip, fill));
        constexpr int kSamples = 40;
        std::vector<SampleDraw> draws;
        std::vector<float> images(kSamples * values);
        for (int i = 0; i < kSamples; ++i) {
          const std::int64_t index = i * 3 % Stored::kImages, epoch = i / 20, position = 1000 + i;
          draws.push_back(augment.draw(index, epoch, position));
          EXPECT_EQ(draws.back().index, index);
          augment.show(stored.image(index), draws.back(),
                       std::span(images).subspan(static_cast<std::size_t>(i) * values, values));
        }
        expect_both(stored, augment, draws, images);
      }
}

TEST_P(Gathered, AreWhatEveryDrawShows) {
  const Stored stored(GetParam());
  const Augment augment(GetParam(), options(0, Flip::none, CropFill::black));
  const auto values = static_cast<std::size_t>(GetParam().bytes());
  const int height = GetParam().height, width = GetParam().width;
  std::vector<SampleDraw> draws;
  for (const bool reflects : {false, true}) {
    const int far = reflects ? 0 : 1;  // black: beyond all of the image too
    for (int y = -height + 1 - far; y < height + far; ++y)
      for (const int x : {-width + 1 - far, -2, -1, 0, 1, 3, width - 1 + far})
        for (const bool is_mirrored : {false, true})
          if (!reflects || std::abs(x) < width)
            draws.push_back({.index = static_cast<int>(draws.size()) % Stored::kImages,
                             .shift_y = y,
                             .shift_x = x,
                             .is_mirrored = is_mirrored,
                             .reflects = reflects});
  }
  std::vector<float> images(draws.size() * values);
  for (std::size_t i = 0; i < draws.size(); ++i)
    augment.show(stored.image(draws[i].index), draws[i], std::span(images).subspan(i * values, values));
  expect_both(stored, augment, draws, images);
}

TEST_P(Gathered, AreTheEvaluationFormsAndTheirViews) {
  if (std::min(GetParam().height, GetParam().width) < 2) GTEST_SKIP() << "no pixel beside an edge";
  const Stored stored(GetParam());
  const Augment augment(GetParam(), options(2, Flip::random, CropFill::black));
  const auto values = static_cast<std::size_t>(GetParam().bytes());
  std::vector<SampleDraw> draws;
  std::vector<float> images(Stored::kImages * data::kMostViews * values);
  for (int index = 0; index < Stored::kImages; ++index)
    for (int view = 0; view < data::kMostViews; ++view) {
      const std::size_t at = draws.size() * values;
      draws.push_back(Augment::view_draw(index, view));
      augment.show(stored.image(index), Augment::view_draw(0, view), std::span(images).subspan(at, values));
      if (view > 0) continue;
      std::vector<float> plain(values);
      augment.evaluate(stored.image(index), plain);
      EXPECT_EQ(std::memcmp(plain.data(), &images[at], values * sizeof(float)), 0) << "view 0 is the image";
    }
  expect_both(stored, augment, draws, images);
}

INSTANTIATE_TEST_SUITE_P(Formats, Gathered,
                         testing::Values(ImageFormat{.height = 28, .width = 28, .channels = 1},  // MNIST
                                         ImageFormat{.height = 32, .width = 32, .channels = 3},  // CIFAR
                                         ImageFormat{.height = 5, .width = 9, .channels = 3},
                                         ImageFormat{.height = 7, .width = 2, .channels = 11},
                                         ImageFormat{.height = 1, .width = 6, .channels = 8}),
                         [](const auto& info) {
                           const ImageFormat& format = info.param;
                           return std::to_string(format.height) + "x" + std::to_string(format.width) + "x" +
                                  std::to_string(format.channels);
                         });

}  // namespace
}  // namespace paceline::train
