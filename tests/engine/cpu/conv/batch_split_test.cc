#include "engine/cpu/conv/batch_split.h"

#include <gtest/gtest.h>

namespace paceline::engine::cpu {
namespace {

ConvShape layer(int channels, int size, int samples) {
  return {.samples = samples,
          .src = {channels, size, size},
          .dst = {channels, size, size},
          .kernel = 3,
          .padding = 1};
}

TEST(Pieces, HaveEnoughWorkForTheirCostAndAreEnoughForManyThreads) {
  // resnet18-cifar at batch 128: the layers' chunks, forward and for the weight gradient.
  EXPECT_EQ(samples_of_chunk(layer(64, 32, 128), Direction::forward), 4);
  EXPECT_EQ(samples_of_chunk(layer(64, 32, 128), Direction::backward_weights), 16);
  EXPECT_EQ(samples_of_chunk(layer(256, 8, 128), Direction::backward_data), 4);
  EXPECT_EQ(samples_of_chunk(layer(256, 8, 128), Direction::backward_weights), 32);
  EXPECT_EQ(samples_of_chunk(layer(512, 4, 128), Direction::backward_weights), 128);
  // Three channels in: cheap, but what it writes is to stay in the cache.
  ConvShape first = layer(64, 32, 128);
  first.src.channels = 3;
  EXPECT_EQ(samples_of_chunk(first, Direction::forward), 4);
  // Too little to share.
  EXPECT_EQ(samples_of_chunk(layer(4, 8, 16), Direction::forward), 16);
}

TEST(Pieces, AreTwoRatherThanOneThatAThreadComputesAlone) {
  const auto of_512 = [](int samples, Direction direction = Direction::forward) {
    return samples_of_chunk(layer(512, 4, samples), direction);
  };
  EXPECT_EQ(of_512(4), 4);  // too small to halve
  EXPECT_EQ(of_512(7), 4);
  EXPECT_EQ(of_512(8), 4);
  EXPECT_EQ(of_512(16), 8);
  EXPECT_EQ(of_512(17), 9);
  EXPECT_EQ(of_512(32), 16);
  EXPECT_EQ(of_512(16, Direction::backward_weights), 16);  // parts of weights share it
}

TEST(Pieces, CoverEveryBatch) {
  for (const int batch : {1, 2, 7, 16, 33, 127, 128, 1000})
    for (const Direction direction :
         {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
      const auto shape = layer(64, 32, batch);
      const int samples = samples_of_chunk(shape, direction);
      ASSERT_GE(samples, 1);
      ASSERT_LE(samples, batch);
    }
  struct Fake final : WgradKernel {
    explicit Fake(int samples) : samples(samples) {}
    [[nodiscard]] std::int64_t packed_bytes() const override { return 64; }
    [[nodiscard]] std::int64_t scratchpad_bytes() const override { return 10 * samples; }
    void unpack(base::ThreadPool&, const float*, float*) const override {}
    void run(const Operands&, int) const override {}
    [[nodiscard]] std::string name() const override { return std::to_string(samples); }
    int samples;
  };
  for (const auto& [batch, samples] : {std::pair{7, 3}, {8, 4}, {5, 9}, {33, 32}, {1, 1}}) {
    const ChunkKernels<WgradKernel> chunks(
        layer(16, 8, batch), samples,
        [](const ConvShape& chunk, const WgradKernel*) { return std::make_unique<Fake>(chunk.samples); });
    int next = 0;
    for (int chunk = 0; chunk < chunks.count(); ++chunk) {
      EXPECT_EQ(chunks.first(chunk), next);
      EXPECT_EQ(chunks.kernel(chunk).name(), std::to_string(chunks.size(chunk)));
      next += chunks.size(chunk);
    }
    EXPECT_EQ(next, batch);
    EXPECT_EQ(chunks.tasks(), chunks.count());
    EXPECT_EQ(chunks.scratchpad_bytes(), 10 * std::min(batch, samples));
  }
}

}  // namespace
}  // namespace paceline::engine::cpu
