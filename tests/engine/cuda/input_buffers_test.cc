// An engine that keeps the images: the bits of one that is given them, in any order of streams.

#include <numeric>

#include "engine/cuda/compare.h"
#include "engine/cuda/input_buffers.h"
#include "engine/cuda/observed_runtime.h"

namespace paceline::engine::cuda {
namespace {

using base::SampleDraw;

constexpr int kImages = 9, kBatchOfImages = 4;

/// Stored images of the model's shape, and what their bytes are worth.
struct Set {
  std::size_t image;
  int width, channels;
  std::vector<std::uint8_t> pixels;
  std::vector<float> byte_values;

  explicit Set(const graph::Graph& graph)
      : image(static_cast<std::size_t>(graph.input_shape().elements())),
        width(graph.input_shape().width),
        channels(graph.input_shape().channels),
        pixels(kImages * image),
        byte_values(256 * static_cast<std::size_t>(channels)) {
    base::Rng rng(1, base::Purpose::test, 7);
    for (auto& pixel : pixels) pixel = static_cast<std::uint8_t>(rng.below(256));
    for (auto& value : byte_values) value = rng.normal();
  }
  /// What a draw without shifts shows, row by row.
  void append(const SampleDraw& draw, std::vector<float>& images) const {
    for (std::size_t i = 0; i < image; ++i) {
      const auto w = static_cast<std::size_t>(width), c = static_cast<std::size_t>(channels);
      const std::size_t x = i / c % w, from = draw.is_mirrored != 0 ? w - 1 - x : x;
      const std::size_t at = static_cast<std::size_t>(draw.index) * image + i - x * c + from * c;
      images.push_back(byte_values[i % c * 256 + pixels[at]]);
    }
  }
};

std::vector<SampleDraw> draws_of(int step, int count) {
  std::vector<SampleDraw> draws;
  for (int i = 0; i < count; ++i)
    draws.push_back(
        {.index = (5 * step + 2 * i) % kImages, .is_mirrored = static_cast<std::int16_t>((step + i) % 2)});
  return draws;
}

/// Every bit that a caller sees of three steps with evaluations in between; of an error, what it says.
std::string trace(const graph::Graph& graph, CompileOptions options, bool stores,
                  const HostRuntimeOptions& order, std::optional<int> dropped_wait = {},
                  int* waits = nullptr) {
  options.stored_images = stores ? kImages : 0;
  auto runtime = std::make_unique<ObservedRuntime>(order);
  ObservedRuntime& host = *runtime;
  const auto engine = compile(graph, options, std::move(runtime));
  toy::initialise(*engine, 4);
  const Set set(graph);
  const std::vector<std::int32_t> labels = {1, 0, 3, 2};
  std::string bytes;
  const auto add = [&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  const auto add_sums = [&](const LossSums& sums) {
    add(&sums.loss, sizeof sums.loss);
    add(&sums.correct, sizeof sums.correct);
  };
  const auto evaluate = [&](int step, int count, int views) {
    const auto draws = draws_of(step, count * views);
    std::vector<float> images;
    for (const auto& draw : draws) set.append(draw, images);
    std::vector<double> logits(static_cast<std::size_t>(count * graph.classes()));
    add_sums(stores ? engine->evaluate_draws(draws, labels, count, views, logits)
                    : engine->evaluate(images, labels, count, views, logits));
    add(logits.data(), logits.size() * sizeof(double));
  };
  const int before = host.waits();
  if (dropped_wait) host.drop_wait(before + *dropped_wait);
  try {
    if (stores) {
      engine->set_byte_values(set.byte_values);
      engine->store_images(0, std::span(set.pixels).first(7 * set.image));
    }
    for (int step = 0; step < 3; ++step) {
      if (stores && step == 1)  // another set, when it is needed first
        engine->store_images(7, std::span(set.pixels).subspan(7 * set.image));
      auto draws = draws_of(step, kBatchOfImages);
      if (step == 0)
        for (auto& draw : draws) draw.index %= 7;
      std::vector<float> images;
      for (const auto& draw : draws) set.append(draw, images);
      StepInput input{.images = images,
                      .labels = labels,
                      .gradient_scale = 1.0 / kBatchOfImages,
                      .step = static_cast<std::uint64_t>(step),
                      .first_position = 50 * step};
      if (stores) input.images = {}, input.draws = draws;
      add_sums(engine->forward(input));
      engine->backward([](std::int64_t) {});
      engine->update(options.rule, 0.1, step + 1);
      if (step > 0) evaluate(step, 3, 1);
    }
    evaluate(5, 2, 2);
    if (waits != nullptr) *waits = host.waits() - before;
    engine->fetch();
    add(engine->weights().data(), engine->weights().size_bytes());
  } catch (const base::Error& error) {
    return error.what();
  }
  return bytes;
}

CompileOptions of_precision(Precision precision) {
  return {.batch = kBatchOfImages, .precision = precision, .rule = {.momentum = 0.9}, .seed = 3};
}

TEST(CudaStoredImages, GiveTheBitsOfImagesThatAreHandedIn) {
  for (const Precision precision : kPrecisions) {
    const std::string want = trace(toy::every_op(), of_precision(precision), false, {});
    ASSERT_GT(want.size(), 1000u) << want;
    EXPECT_TRUE(trace(toy::every_op(), of_precision(precision), true, {}) == want) << name_of(precision);
    for (int seed = 0; seed < 10; ++seed) {
      const HostRuntimeOptions order{.order = StreamOrder::random, .seed = static_cast<std::uint64_t>(seed)};
      EXPECT_TRUE(trace(toy::every_op(), of_precision(precision), true, order) == want) << "order " << seed;
    }
    EXPECT_TRUE(trace(toy::every_op(), of_precision(precision), true, {.order = StreamOrder::last_first}) ==
                want);
  }
}

TEST(CudaStoredImages, ShowEachWaitThatIsMissing) {
  const auto options = of_precision(Precision::f32);
  int waits = 0;
  const std::string want = trace(toy::every_op(), options, true, {}, {}, &waits);
  ASSERT_GT(waits, 0);
  for (int wait = 0; wait < waits; ++wait) {
    bool is_seen = trace(toy::every_op(), options, true, {.order = StreamOrder::last_first}, wait) != want ||
                   trace(toy::every_op(), options, true, {.order = StreamOrder::first_first}, wait) != want;
    for (std::uint64_t seed = 0; seed < 10 && !is_seen; ++seed)
      is_seen =
          trace(toy::every_op(), options, true, {.order = StreamOrder::random, .seed = seed}, wait) != want;
    EXPECT_TRUE(is_seen) << "wait " << wait << " of " << waits << " can be left out";
  }
}

TEST(CudaStoredImages, RefuseWhatWasNeverStored) {
  const auto graph = toy::every_op();
  CompileOptions options = of_precision(Precision::f32);
  options.stored_images = kImages;
  const auto engine = compile_on_host(graph, options);
  toy::initialise(*engine, 4);
  const Set set(graph);
  const std::vector<std::int32_t> labels(kBatchOfImages);
  std::vector<SampleDraw> draws(kBatchOfImages);
  const auto step = [&] { (void)engine->forward({.images = {}, .labels = labels, .draws = draws}); };
  EXPECT_DEATH(step(), "values of bytes are set");
  engine->set_byte_values(set.byte_values);
  EXPECT_DEATH(step(), "an image that was stored");
  engine->store_images(2, std::span(set.pixels).first(2 * set.image));
  for (auto& draw : draws) draw.index = 3;
  step();
  draws.back().index = 4;
  EXPECT_DEATH(step(), "an image that was stored");
  draws.back() = {.index = 3, .shift_x = graph.input_shape().width, .reflects = 1};
  EXPECT_DEATH(step(), "reflects less than an image");
  EXPECT_DEATH(engine->store_images(kImages - 1, std::span(set.pixels).first(2 * set.image)),
               "room for them");
  const toy::Samples samples(graph, 0, kBatchOfImages);
  EXPECT_DEATH((void)engine->forward(samples.step(1)), "images, or draws");
  const auto other = compile_on_host(graph, of_precision(Precision::f32));
  EXPECT_DEATH((void)other->forward({.images = {}, .labels = labels, .draws = draws}), "images, or draws");
  EXPECT_DEATH(
      (void)reference::compile(graph, of_precision(Precision::f32))->set_byte_values(set.byte_values),
      "engines that keep them");
}

}  // namespace
}  // namespace paceline::engine::cuda
