#pragma once

/// What the tests of the cpu engine share: variants of the engine, and the comparison with the reference
/// engine (double) by parameter.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/onednn.h"
#include "engine/cpu/engine.h"
#include "engine/cpu/units.h"
#include "engine/reference/double_engine.h"
#include "engine/reference/toy.h"
#include "engine/tolerance.h"
#include "graph/rates.h"
#include "graph/zoo.h"

namespace paceline::engine::cpu {

/// One way the engine can run on this machine.
struct Variant {
  Precision precision = Precision::f32;
  int threads = 1;
  Tuning tuning;
  std::string name;
};

/// The machine's best instruction set in fp32 and bf16, oneDNN's own bf16, 1 and 2 threads; always poisoned.
/// That the other instruction sets give the same bits is a test of its own.
inline std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const int threads : {1, 2})
    all.push_back({.precision = Precision::f32,
                   .threads = threads,
                   .tuning = {.poison = true},
                   .name = "f32, threads " + std::to_string(threads)});
  all.push_back({.precision = Precision::f32,
                 .threads = 2,
                 .tuning = {.algorithms = {find_algorithm("winograd")}, .poison = true},
                 .name = "f32 by Winograd"});
  all.push_back({.precision = Precision::f32,
                 .threads = 2,
                 .tuning = {.algorithms = {find_algorithm("gemm-per-tap")}, .poison = true},
                 .name = "f32 by taps"});
  all.push_back({.precision = Precision::f32,
                 .threads = 2,
                 .tuning = {.chunk_samples = 3, .poison = true},
                 .name = "f32 in chunks of 3"});
  all.push_back({.precision = Precision::bf16,
                 .threads = 2,
                 .tuning = {.bf16_products = false, .block_bytes = 1 << 14, .poison = true},
                 .name = "bf16 in blocks"});
  all.push_back(
      {.precision = Precision::bf16,
       .threads = 2,
       .tuning = {.bf16_products = false, .algorithms = {find_algorithm("winograd")}, .poison = true},
       .name = "bf16 in blocks by Winograd"});
  all.push_back(
      {.precision = Precision::bf16, .threads = 2, .tuning = {.poison = true}, .name = "bf16 as it suits"});
  all.push_back({.precision = Precision::bf16,
                 .threads = 2,
                 .tuning = {.algorithms = {find_algorithm("winograd")}, .poison = true},
                 .name = "bf16 by Winograd"});
  all.push_back(
      {.precision = Precision::f32,
       .threads = 2,
       .tuning = {.algorithms = {find_algorithm("dgrad-as-forward")}, .chunk_samples = 3, .poison = true},
       .name = "f32, backward data by turned weights"});
  all.push_back({.precision = Precision::bf16,
                 .threads = 2,
                 .tuning = {.bf16_products = false,
                            .block_bytes = 1 << 14,
                            .algorithms = {find_algorithm("dgrad-as-forward")},
                            .poison = true},
                 .name = "bf16 in blocks, backward data by turned weights"});
  if (bf16_products_here() != Bf16Products::none)
    all.push_back({.precision = Precision::bf16,
                   .threads = 2,
                   .tuning = {.bf16_products = true,
                              .algorithms = {find_algorithm("dgrad-as-forward")},
                              .chunk_samples = 3,
                              .poison = true},
                   .name = "bf16 products, backward data by turned weights"});
  if (bf16_products_here() != Bf16Products::none)
    all.push_back({.precision = Precision::bf16,
                   .threads = 1,
                   .tuning = {.isa = {}, .bf16_products = true, .poison = true},
                   .name = "bf16 products"});
  return all;
}

/// bf16 by tiles, their units emulated; chunks of 16 or 32 samples, of which the last is cut short.
inline std::vector<Variant> tile_variants() {
  std::vector<Variant> all;
  for (const units::Unit unit : units::kEmulatedUnits)
    all.push_back(
        {.precision = Precision::bf16,
         .threads = 2,
         .tuning = {.bf16_products = true, .algorithms = units::bf16_algorithms_on(unit), .poison = true},
         .name = "bf16 by tiles, " + std::string(units::name_of(unit))});
  return all;
}
inline std::vector<Variant> variants_and_tiles() {
  auto all = variants();
  for (const Variant& variant : tile_variants()) all.push_back(variant);
  return all;
}

inline CompileOptions options_of(const Variant& variant, CompileOptions options) {
  options.precision = variant.precision;
  options.threads = variant.threads;
  return options;
}
inline CompileOptions reference_options(CompileOptions options) {
  options.precision = Precision::f32;
  options.threads = 1;
  return options;
}

/// Two training steps, and an evaluation of a short batch, on both engines.
inline void expect_like_reference(const graph::Graph& graph, const CompileOptions& options,
                                  const Variant& variant, Tolerance allowed) {
  SCOPED_TRACE(variant.name);
  auto engine = compile(graph, options_of(variant, options), variant.tuning);
  auto reference = reference::compile_double(graph, reference_options(options));
  toy::initialise(*engine, 3);
  toy::initialise(*reference, 3);
  for (int step = 0; step < 2; ++step) {
    const toy::Samples samples(graph, 100 * step, options.batch, options.has_two_labels);
    const auto input = samples.step(1.0 / options.batch, static_cast<std::uint64_t>(step), 100 * step);
    const LossSums got = engine->forward(input), want = reference->forward(input);
    EXPECT_NEAR(got.loss / got.samples, want.loss / want.samples,
                allowed.relative * std::abs(want.loss / want.samples) + allowed.absolute)
        << "step " << step;
    EXPECT_EQ(got.samples, options.batch);
    engine->backward([](std::int64_t) {});
    reference->backward([](std::int64_t) {});
    expect_near_by_parameter(*engine, engine->gradients().host(), reference->gradients().host(), allowed,
                             "gradient");
    engine->update(options.rule, 0.01, step + 1);
    reference->update(options.rule, 0.01, step + 1);
  }
  expect_near_by_parameter(*engine, engine->weights(), reference->weights(), allowed, "weight");
  const int count = (options.batch + 1) / 2;
  const toy::Samples samples(graph, 5000, count);
  const LossSums got = engine->evaluate(samples.images, samples.labels, count);
  const LossSums want = reference->evaluate(samples.images, samples.labels, count);
  EXPECT_NEAR(got.loss, want.loss,
              count * (allowed.relative * std::abs(want.loss / count) + allowed.absolute))
      << "evaluation";
  EXPECT_EQ(got.samples, count);
}

}  // namespace paceline::engine::cpu
