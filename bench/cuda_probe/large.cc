// A convolution whose tensors have more than 2^31 elements: does it run, and is its last sample right?

#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda_probe/gpu.h"
#include "cuda_probe/part.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/cudnn/convolution.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/runtime/host_runtime.h"
#include "engine/cuda/runtime/runtime.h"

namespace paceline::probe {
namespace {

namespace cudnn = cuda::cudnn;
using Values = std::vector<cuda::Bf16>;

// 2,176,782,336 elements each side, 4.4 GB in bf16.
constexpr int kSamples = 2712, kSize = 112, kChannels = 64;

cuda::ConvProblem problem_of(cuda::ConvDirection direction, int samples) {
  return {.direction = direction,
          .precision = engine::Precision::bf16,
          .samples = samples,
          .channels_in = kChannels,
          .height_in = kSize,
          .width_in = kSize,
          .channels_out = kChannels,
          .height_out = kSize,
          .width_out = kSize,
          .kernel_height = 3,
          .kernel_width = 3,
          .padding = 1};
}

Values pattern(std::int64_t count, std::uint32_t seed) {
  Values values(static_cast<std::size_t>(count));
  for (cuda::Bf16& value : values) {
    seed = seed * 1664525u + 1013904223u;
    cuda::store(static_cast<float>(static_cast<int>(seed >> 24) - 128) / 128, value);
  }
  return values;
}

double difference(const Values& seen, const Values& wanted) {
  double largest = 1e-30, error = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double value = cuda::load(seen[i]), right = cuda::load(wanted[i]);
    if (!std::isfinite(value)) return HUGE_VAL;
    largest = std::max(largest, std::abs(right));
    error = std::max(error, std::abs(value - right));
  }
  return error / largest;
}

/// All samples but the last are zeros, so that the last alone says what comes out, also of d_weight.
Json run_one(Gpu& gpu, const cudnn::Connection& connection, cuda::ConvDirection direction) {
  const cuda::ConvProblem problem = problem_of(direction, kSamples), last = problem_of(direction, 1);
  auto plan = cudnn::first_plan(cudnn::TargetDevice(connection.api(), connection.handle()), problem,
                                gpu.workspace_limit());
  const Operands device(gpu, problem, plan.workspace_bytes);
  const std::size_t sample_bytes = static_cast<std::size_t>(last.src_elements()) * sizeof(cuda::Bf16);
  const auto last_of = [&](void* tensor) {
    return static_cast<std::byte*>(tensor) + (kSamples - 1) * sample_bytes;
  };
  Values src = pattern(last.src_elements(), 1), dst = pattern(last.dst_elements(), 2);
  Values weight = pattern(last.weight_elements(), 3);
  gpu.fill(device.pointers.src, 0, device.src_bytes);
  gpu.fill(device.pointers.dst, 0, device.dst_bytes);
  gpu.upload(last_of(device.pointers.src), src.data(), sample_bytes);
  gpu.upload(last_of(device.pointers.dst), dst.data(), sample_bytes);
  gpu.upload(device.pointers.weight, weight.data(), device.weight_bytes);

  const auto convolution = cudnn::make_convolution(
      connection, [&gpu](cuda::Stream) -> void* { return gpu.stream(); }, std::move(plan));
  convolution->run({0}, device.pointers);
  cuda::convolve_on_host(last, {src.data(), dst.data(), weight.data(), nullptr});

  const bool is_forward = direction == cuda::ConvDirection::forward;
  const bool is_data = direction == cuda::ConvDirection::backward_data;
  const Values& wanted = is_forward ? dst : is_data ? src : weight;
  const void* const from = is_forward ? last_of(device.pointers.dst)
                           : is_data  ? last_of(device.pointers.src)
                                      : static_cast<std::byte*>(device.pointers.weight);
  Values seen(wanted.size());
  gpu.download(seen.data(), from, seen.size() * sizeof(cuda::Bf16));
  return {{"elements", problem.src_elements()},
          {"engine", convolution->algorithm()},
          {"error_by_largest_of_last_sample", difference(seen, wanted)}};
}

}  // namespace

void check_large(Findings& findings) {
  Gpu gpu;
  const cuda::CudnnApi api = open_cudnn();
  const cudnn::Connection connection(api);
  for (const cuda::ConvDirection direction :
       {cuda::ConvDirection::forward, cuda::ConvDirection::backward_data,
        cuda::ConvDirection::backward_weights}) {
    const std::string what = describe(problem_of(direction, kSamples));
    if (!findings.has_time_for(what)) return;
    findings.attempt(what, [&] { findings.json[what] = run_one(gpu, connection, direction); });
    gpu.free_all();
  }
}

}  // namespace paceline::probe
