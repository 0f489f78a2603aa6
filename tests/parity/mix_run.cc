// Mixes images, and computes losses of two labels, for tests/parity/mix.py. All numbers are binary.
//
//     mix_run images HEIGHT WIDTH CHANNELS MIXUP CUTMIX PAIRS   reads two images of floats; writes for each
//                                                  pair is_cut, share, top, left, height, width as floats,
//                                                  then both images mixed
//     mix_run loss SAMPLES CLASSES SMOOTHING       reads logits and weights of classes (double), then label,
//                                                  second label (int32) and its weight (float) of each
//                                                  sample; writes loss and gradient (double)

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "data/mix.h"
#include "engine/reference/ops.h"

namespace {

template <typename T>
bool read_all(std::vector<T>& values) {
  return std::fread(values.data(), sizeof(T), values.size(), stdin) == values.size();
}
template <typename T>
bool write_all(const std::vector<T>& values) {
  return std::fwrite(values.data(), sizeof(T), values.size(), stdout) == values.size();
}

int run_images(char** words) {
  using namespace paceline::data;
  const ImageFormat format{
      .height = std::atoi(words[2]), .width = std::atoi(words[3]), .channels = std::atoi(words[4])};
  const MixOptions options{.mixup = std::atof(words[5]), .cutmix = std::atof(words[6]), .seed = 1};
  std::vector<float> first(static_cast<std::size_t>(format.bytes())), second(first.size());
  if (!read_all(first) || !read_all(second)) return 1;
  for (int i = 0; i < std::atoi(words[7]); ++i) {
    const PairMix pair = draw_pair(options, format, 0, i);
    std::vector<float> a = first, b = second, numbers{pair.is_cut ? 1.0f : 0.0f, pair.share};
    for (const int number : {pair.top, pair.left, pair.height, pair.width})
      numbers.push_back(static_cast<float>(number));
    mix_into(format, pair, second, a);
    mix_into(format, pair, first, b);
    if (!write_all(numbers) || !write_all(a) || !write_all(b)) return 1;
  }
  return 0;
}

int run_loss(char** words) {
  using namespace paceline;
  const int samples = std::atoi(words[2]), classes = std::atoi(words[3]);
  const auto rows = static_cast<std::size_t>(samples);
  std::vector<double> logits(rows * static_cast<std::size_t>(classes)),
      weights(static_cast<std::size_t>(classes)), probabilities(logits.size()), d_logits(logits.size(), 0.0);
  std::vector<std::int32_t> labels(rows);
  std::vector<base::SecondLabel> second(rows);
  if (!read_all(logits) || !read_all(weights) || !read_all(labels) || !read_all(second)) return 1;
  const engine::reference::OpShapes shapes{
      .batch = samples, .src = {.channels = classes}, .dst = {.channels = classes}};
  const graph::SoftmaxCrossEntropy op{.label_smoothing = std::atof(words[4]), .class_weights = weights};
  std::vector<double> loss(1);
  (void)engine::reference::softmax_cross_entropy_forward(
      shapes, op, logits.data(), std::span<const std::int32_t>(labels), probabilities.data(), loss.data(),
      std::span<const base::SecondLabel>(second));
  engine::reference::softmax_cross_entropy_backward(shapes, op, probabilities.data(),
                                                    std::span<const std::int32_t>(labels), 1, d_logits.data(),
                                                    std::span<const base::SecondLabel>(second));
  return write_all(loss) && write_all(d_logits) ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count == 8 && std::string_view(words[1]) == "images") return run_images(words);
  if (count == 5 && std::string_view(words[1]) == "loss") return run_loss(words);
  std::fprintf(stderr,
               "usage: mix_run images HEIGHT WIDTH CHANNELS MIXUP CUTMIX PAIRS, or\n"
               "       mix_run loss SAMPLES CLASSES SMOOTHING\n");
  return 2;
}
