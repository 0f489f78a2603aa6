// The order of streams: the same bits for any that events allow, and each wait is needed.

#include <cstdlib>
#include <iostream>

#include "engine/cuda/compare.h"
#include "engine/cuda/observed_runtime.h"
#include "graph/zoo.h"

namespace paceline::engine::cuda {
namespace {

/// Every bit that a caller can see of three steps with an evaluation in between; what ends with an error says
/// so.
std::string trace(const graph::Graph& graph, const CompileOptions& options, const HostRuntimeOptions& order,
                  std::optional<int> dropped_wait = {}, int* waits = nullptr) {
  auto runtime = std::make_unique<ObservedRuntime>(order);
  ObservedRuntime& host = *runtime;
  const auto engine = compile(graph, options, std::move(runtime), {.name = "cuda", .poison = false});
  toy::initialise(*engine, 4);
  const int before = host.waits();
  if (dropped_wait) host.drop_wait(before + *dropped_wait);
  std::string bytes;
  const auto add = [&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  const auto add_sums = [&](const LossSums& sums) {
    add(&sums.loss, sizeof sums.loss);
    add(&sums.correct, sizeof sums.correct);
  };
  try {
    for (int step = 0; step < 3; ++step) {
      toy::Samples samples(graph, 50 * step, options.batch);
      add_sums(
          engine->forward(samples.step(1.0 / options.batch, static_cast<std::uint64_t>(step), 50 * step)));
      engine->backward([](std::int64_t) {});
      engine->update(options.rule, 0.1, step + 1);
      if (step == 1) add_sums(engine->evaluate(samples.images, samples.labels, options.batch));
    }
    if (waits != nullptr) *waits = host.waits() - before;
    engine->fetch();
    add(engine->weights().data(), engine->weights().size_bytes());
    for (int slot = 0; slot < state_slots(options.rule); ++slot)
      add(engine->optimizer_state(slot).data(), engine->optimizer_state(slot).size_bytes());
  } catch (const base::Error& error) {
    return error.what();
  }
  return bytes;
}

std::vector<HostRuntimeOptions> orders(int random) {
  std::vector<HostRuntimeOptions> all = {{.order = StreamOrder::first_first},
                                         {.order = StreamOrder::last_first}};
  for (int seed = 0; seed < random; ++seed)
    all.push_back({.order = StreamOrder::random, .seed = static_cast<std::uint64_t>(seed)});
  return all;
}

void expect_same_bits(const graph::Graph& graph, const CompileOptions& options, int random) {
  SCOPED_TRACE(graph.name + ", " + name_of(options.precision));
  const std::string want = trace(graph, options, {});
  ASSERT_GT(want.size(), 1000u) << want;
  int order = 0;
  for (const HostRuntimeOptions& other : orders(random))
    EXPECT_TRUE(trace(graph, options, other) == want) << "order " << order++;
}

TEST(CudaOrders, DoNotChangeABit) {
  for (const Precision precision : kPrecisions)
    expect_same_bits(toy::every_op(),
                     {.batch = 4, .precision = precision, .rule = {.kind = UpdateKind::adam}, .seed = 3}, 10);
}

TEST(CudaOrders, DoNotChangeABitOfSharedStatistics) {
  const CompileOptions options{.batch = 4,
                               .rule = {.momentum = 0.9},
                               .batch_norm = BatchNormMode::synchronised,
                               .shard = 2,
                               .reduce_statistics = [](std::span<double>) {}};
  expect_same_bits(toy::every_op(), options, 10);
}

/// Each wait of three steps is left out in turn: at least one order must show it.
void expect_each_wait_is_needed(const graph::Graph& graph, const CompileOptions& options, int random) {
  int waits = 0;
  const std::string want = trace(graph, options, {}, {}, &waits);
  ASSERT_GT(waits, 0);
  std::vector<HostRuntimeOptions> all = orders(random);
  all.insert(all.begin(), HostRuntimeOptions{});
  for (int wait = 0; wait < waits; ++wait)
    EXPECT_TRUE(std::ranges::any_of(
        all, [&](const HostRuntimeOptions& order) { return trace(graph, options, order, wait) != want; }))
        << "wait " << wait << " of " << waits << " can be left out";
  std::cout << "  " << waits << " waits in three steps and an evaluation, each found when it is left out\n";
}

TEST(CudaOrders, ShowEachWaitThatIsMissing) {
  expect_each_wait_is_needed(toy::every_op(), {.batch = 4, .rule = {.momentum = 0.9}, .seed = 3}, 10);
}

TEST(CudaOrders, ShowEachWaitOfSharedStatisticsThatIsMissing) {
  const CompileOptions options{.batch = 4,
                               .rule = {.momentum = 0.9},
                               .batch_norm = BatchNormMode::synchronised,
                               .shard = 2,
                               .reduce_statistics = [](std::span<double>) {}};
  expect_each_wait_is_needed(toy::every_op(0), options, 10);
}

/// The smallest images that each model of the zoo takes.
graph::Graph small_model(const std::string& name) {
  const bool is_mnist = name.starts_with("mnist");
  const int size = is_mnist ? 12 : name == "resnet18" ? 32 : 8;
  return graph::make_model(name, {is_mnist ? 1 : 3, size, size}, 10, 0.1);
}

// Minutes each: tests/CMakeLists.txt has them run where long tests are run.
class CudaOrdersOfModels : public testing::TestWithParam<std::tuple<std::string, Precision>> {
 protected:
  void SetUp() override {
    if (std::getenv("PACELINE_LONG") == nullptr) GTEST_SKIP() << "PACELINE_LONG=1 runs it: some minutes";
  }
  const std::string& model() const { return std::get<0>(GetParam()); }
  CompileOptions options() const {
    return {.batch = 2, .precision = std::get<1>(GetParam()), .rule = {.momentum = 0.9}};
  }
};

TEST_P(CudaOrdersOfModels, LongDoNotChangeABit) { expect_same_bits(small_model(model()), options(), 100); }

TEST_P(CudaOrdersOfModels, LongShowEachWaitThatIsMissing) {
  expect_each_wait_is_needed(small_model(model()), options(), 10);
}

INSTANTIATE_TEST_SUITE_P(Zoo, CudaOrdersOfModels,
                         testing::Combine(testing::ValuesIn(graph::models_in_code()),
                                          testing::ValuesIn(kPrecisions)),
                         [](const auto& info) {
                           std::string name =
                               std::get<0>(info.param) + "_" + name_of(std::get<1>(info.param));
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace paceline::engine::cuda
