// The timeline of the CUDA engine's training step, and figures of its evaluations, on a simulated H100
// (tests/engine/cuda/simulated_runtime.h): real engine code, predicted durations, no GPU. What it shows is
// whether the host keeps the device busy, and what a wait or a launch more would cost; how fast kernels
// really are it does not know.
//
//   bench_cuda_timeline [MODEL [BATCH...]]        default: resnet18-cifar 128 512, in bf16

#include <fmt/core.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "engine/cuda/simulated_step.h"
#include "graph/zoo.h"

namespace {

using namespace paceline;
using engine::cuda::SimulatedStepOptions;
using Wait = SimulatedStepOptions::Wait;

struct Variant {
  const char* name;
  SimulatedStepOptions how;
};
const Variant kVariants[] = {
    {"as it is: the device keeps the images", {}},
    {"images are copied to the device", {.stores_images = false}},
    {"a wait for each step's loss", {.wait = Wait::loss}},
    {"a wait between forward and backward", {.wait = Wait::middle}},
    {"a wait after the update", {.wait = Wait::end}},
    {"images are copied, a wait after the update", {.stores_images = false, .wait = Wait::end}},
    {"without captured sections", {.captures = false}},
    {"without them, a wait for each step's loss", {.captures = false, .wait = Wait::loss}},
    {"without them, a wait between forward and backward", {.captures = false, .wait = Wait::middle}},
    {"without them, a wait after the update", {.captures = false, .wait = Wait::end}},
    {"evaluation of full batches", {.evaluates = true}},
    {"evaluation, images are copied to the device", {.stores_images = false, .evaluates = true}},
    {"evaluation without captured sections", {.captures = false, .evaluates = true}},
};

void show(const std::string& model, int batch) {
  const int size = model.starts_with("mnist") ? 28 : model.ends_with("cifar") ? 32 : 224;
  const auto graph = graph::make_model(model, {size == 28 ? 1 : 3, size, size}, size == 224 ? 1000 : 10, 0.1);
  const engine::CompileOptions options{
      .batch = batch, .precision = engine::Precision::bf16, .rule = {.momentum = 0.9}};
  for (const Variant& variant : kVariants) {
    const auto step = engine::cuda::simulate_step(graph, options, variant.how);
    if (&variant == kVariants)
      fmt::print("{}\n",
                 engine::cuda::picture_of(step, fmt::format("{}, batch {}, bf16", model, batch), batch));
    fmt::print("  {:<52} {}\n", variant.name, engine::cuda::figures_of(step, batch));
  }
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string model = argc > 1 ? argv[1] : "resnet18-cifar";
    std::vector<int> batches;
    for (int i = 2; i < argc; ++i) batches.push_back(std::stoi(argv[i]));
    if (batches.empty()) batches = {128, 512};
    for (const int batch : batches) show(model, batch);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_cuda_timeline: {}\n", error.what());
    return 1;
  }
  return 0;
}
