// What copies and launches cost.

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "cuda_probe/gpu.h"
#include "cuda_probe/part.h"
#include "engine/cuda/cudnn/convolution.h"
#include "engine/cuda/kernels/table.h"
#include "engine/cuda/runtime/runtime.h"

namespace paceline::probe {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{256} << 20;

/// Host time a call and device time a call, in microseconds, of `count` calls without a wait between them.
Json cost_of_calls(Gpu& gpu, int count, const std::function<void()>& call) {
  for (int i = 0; i < 10; ++i) call();
  gpu.wait();
  double host_us = 0;
  const double device_ms = gpu.milliseconds([&] {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) call();
    host_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  });
  return {{"host_us", host_us / count}, {"device_us", device_ms * 1e3 / count}, {"calls", count}};
}

}  // namespace

void time_copies(Findings& findings) {
  Gpu gpu;
  void* const device = gpu.allocate(kCopyBytes);
  void* const other = gpu.allocate(kCopyBytes);
  void* const pinned = gpu.allocate_pinned(kCopyBytes);
  std::vector<std::byte> pageable(kCopyBytes);
  const struct {
    const char* name;
    void* dst;
    const void* src;
    int kind;
    double bytes;
  } copies[] = {{"pinned to device", device, pinned, cuda::kCudaMemcpyHostToDevice, kCopyBytes},
                {"device to pinned", pinned, device, cuda::kCudaMemcpyDeviceToHost, kCopyBytes},
                {"pageable to device", device, pageable.data(), cuda::kCudaMemcpyHostToDevice, kCopyBytes},
                {"device to device, read and written", other, device, cuda::kCudaMemcpyDeviceToDevice,
                 2.0 * kCopyBytes}};
  for (const auto& copy : copies)
    findings.attempt(copy.name, [&] {
      const auto once = [&] {
        gpu.check(gpu.api().cudaMemcpyAsync(copy.dst, copy.src, kCopyBytes, copy.kind, gpu.stream()),
                  "cudaMemcpyAsync");
      };
      once();
      gpu.wait();
      const double milliseconds = gpu.milliseconds([&] {
        for (int i = 0; i < 5; ++i) once();
      }) / 5;
      findings.json["gb_per_s"][copy.name] = copy.bytes / milliseconds * 1e-6;
    });
}

void time_launches(Findings& findings) {
  Gpu gpu;
  float* const values = static_cast<float*>(gpu.allocate(1 << 20));
  findings.attempt("memset of 4 bytes", [&] {
    findings.json["memset of 4 bytes"] = cost_of_calls(gpu, 1000, [&] { gpu.fill(values, 0, 4); });
  });
  findings.attempt("own kernel", [&] {
    const cuda::ArrayFill kernel{.dst = values, .count = 256, .value = 0};
    const cuda::Grid grid = kernel.grid();
    findings.json["own kernel"] = cost_of_calls(gpu, 1000, [&] {
      gpu.check(
          gpu.api().launch(cuda::kKernelNumber<cuda::ArrayFill>, &kernel, sizeof kernel, &grid, gpu.stream()),
          "the launch of a kernel");
    });
  });
  findings.attempt("100 own kernels, captured", [&] {
    const cuda::ArrayFill kernel{.dst = values, .count = 256, .value = 0};
    const cuda::Grid grid = kernel.grid();
    auto* const captured = gpu.capture([&] {
      for (int i = 0; i < 100; ++i)
        gpu.check(gpu.api().launch(cuda::kKernelNumber<cuda::ArrayFill>, &kernel, sizeof kernel, &grid,
                                   gpu.stream()),
                  "the launch of a kernel");
    });
    findings.json["100 own kernels, captured"] = cost_of_calls(gpu, 100, [&] { gpu.replay(captured); });
  });
  findings.attempt("event recorded", [&] {
    cuda::CudaEventHandle event = nullptr;
    gpu.check(gpu.api().cudaEventCreateWithFlags(&event, cuda::kCudaEventDisableTiming),
              "cudaEventCreateWithFlags");
    findings.json["event recorded"] = cost_of_calls(
        gpu, 1000, [&] { gpu.check(gpu.api().cudaEventRecord(event, gpu.stream()), "cudaEventRecord"); });
    gpu.check(gpu.api().cudaEventDestroy(event), "cudaEventDestroy");
  });
  findings.attempt("small convolution", [&] {
    const cuda::CudnnApi api = open_cudnn();
    const cuda::cudnn::Connection connection(api);
    const cuda::ConvProblem problem = {.precision = gpu.precision(),
                                       .samples = 1,
                                       .channels_in = 64,
                                       .height_in = 4,
                                       .width_in = 4,
                                       .channels_out = 64,
                                       .height_out = 4,
                                       .width_out = 4};
    auto plan = cuda::cudnn::first_plan(cuda::cudnn::TargetDevice(api, connection.handle()), problem,
                                        gpu.workspace_limit());
    const Operands operands(gpu, problem, plan.workspace_bytes);
    const auto convolution = cuda::cudnn::make_convolution(
        connection, [&gpu](cuda::Stream) -> void* { return gpu.stream(); }, std::move(plan));
    findings.json["small convolution"] =
        cost_of_calls(gpu, 1000, [&] { convolution->run({0}, operands.pointers); });
  });
  findings.attempt("launch and wait", [&] {
    const Json one = cost_of_calls(gpu, 200, [&] {
      gpu.fill(values, 0, 4);
      gpu.wait();
    });
    findings.json["launch and wait"] = one;
  });
}

}  // namespace paceline::probe
