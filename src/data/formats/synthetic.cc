#include "data/formats/synthetic.h"

#include <fmt/core.h>

#include <chrono>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/rng.h"

namespace paceline::data {
namespace {

constexpr int kClasses = 10;
constexpr std::uint32_t kFalseCueOf16 = 2;  // in 2 of 16 images one cue is drawn at random instead

/// The label of `index`: each block of ten consecutive samples contains every class once, in its own random
/// order.
int label_of(std::int64_t index, base::Rng& rng) {
  constexpr std::uint32_t kSteps[] = {1, 3, 7, 9};  // prime to 10
  const std::uint32_t word = rng.next_u32();
  const std::uint32_t step = kSteps[word & 3];
  return static_cast<int>((static_cast<std::uint32_t>(index % kClasses) * step + (word >> 2) % kClasses) %
                          kClasses);
}

enum class SyntheticSplit : std::uint64_t { train = 0, test = 1 };

class SyntheticDataset final : public Dataset {
 public:
  SyntheticDataset(std::int64_t size, std::uint64_t seed, SyntheticSplit split,
                   std::chrono::microseconds delay)
      : size_(size), seed_(seed), split_(split), delay_(delay) {}

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] ImageFormat format() const override {
    return {.height = kSide, .width = kSide, .channels = 3};
  }

  [[nodiscard]] std::int64_t stored_bytes(std::int64_t) const override { return 0; }
  [[nodiscard]] bool reads_from_memory() const override { return delay_.count() == 0; }

  std::int32_t read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    base::expects(index >= 0 && index < size_, "0 <= index < size");
    base::expects(static_cast<std::int64_t>(pixels.size()) == format().bytes(), "pixels hold one image");
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
    // Streams: 2 * split for the order of labels, 2 * split + 1 for the images, so that all four are
    // independent.
    const auto split = static_cast<std::uint64_t>(split_);
    base::Rng order(seed_, base::Purpose::synthetic, static_cast<std::uint64_t>(index / kClasses), 2 * split);
    const int label = label_of(index, order);
    base::Rng rng(seed_, base::Purpose::synthetic, static_cast<std::uint64_t>(index), 2 * split + 1);
    Cues cues = cues_of_class(label);
    const std::uint32_t word = rng.next_u32();
    if (word % 16 < kFalseCueOf16) {
      int* const all[] = {&cues.shape, &cues.texture, &cues.scheme};
      *all[(word >> 4) % 3] = static_cast<int>((word >> 8) % 5);
    }
    draw_synthetic(cues, rng, pixels);
    return label;
  }

 private:
  std::int64_t size_;
  std::uint64_t seed_;
  SyntheticSplit split_;
  std::chrono::microseconds delay_;
};

}  // namespace

Cues cues_of_class(int label) {
  base::expects(label >= 0 && label < kClasses, "0 <= label < 10");
  // Classes i and 5 + i share a shape; no two share two cues (a test goes through all pairs).
  const int i = label % 5, second = label / 5;
  return {.shape = i, .texture = (3 * i + 2 * second) % 5, .scheme = (2 * i + second) % 5};
}

Source open_synthetic(const Spec& spec) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const std::int64_t train = integer_option(spec, "train", 50'000, 1, kMost);
  const std::int64_t test = integer_option(spec, "test", 10'000, 1, kMost);
  const auto seed = static_cast<std::uint64_t>(
      integer_option(spec, "seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  const std::chrono::microseconds delay(integer_option(spec, "delay-us", 0, 0, 10'000'000));
  Source source;
  source.spec = spec.text;
  source.name = "synthetic";
  source.description = fmt::format(
      "synthetic data (drawn, not photographed; seed {}): {} training images, {} test images, 32x32x3", seed,
      train, test);
  if (delay.count() > 0)
    source.description += fmt::format(", EMULATED slow storage: {} us an image", delay.count());
  source.synthetic = true;
  source.train = std::make_unique<SyntheticDataset>(train, seed, SyntheticSplit::train, delay);
  source.test = std::make_unique<SyntheticDataset>(test, seed, SyntheticSplit::test, delay);
  constexpr const char* kShapes[] = {"disc", "square", "triangle", "cross", "ring"};
  constexpr const char* kTextures[] = {"striped", "checked", "dotted", "banded", "halved"};
  constexpr const char* kSchemes[] = {"red-yellow", "yellow-green", "green-blue", "blue-violet",
                                      "violet-red"};
  for (int label = 0; label < kClasses; ++label) {
    const Cues cues = cues_of_class(label);
    source.class_names.push_back(
        fmt::format("{} {} {}", kTextures[cues.texture], kSchemes[cues.scheme], kShapes[cues.shape]));
  }
  source.mean = {0.408f, 0.362f, 0.364f};  // measured over the training images of seed 0; a test checks them
  source.stddev = {0.178f, 0.153f, 0.174f};
  source.crop_padding = 4;
  source.flip = Flip::random;
  return source;
}

}  // namespace paceline::data
