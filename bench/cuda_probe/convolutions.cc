// Convolutions on the device: are they right, are they the same twice, how long do they take.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "cuda_probe/gpu.h"
#include "cuda_probe/part.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/cudnn/convolution.h"
#include "engine/cuda/runtime/host_runtime.h"
#include "engine/cuda/runtime/runtime.h"

namespace paceline::probe {
namespace {

namespace cudnn = cuda::cudnn;
using engine::Precision;

float at(const std::vector<std::byte>& values, std::size_t i, Precision precision) {
  if (precision == Precision::f32) {
    float value;
    std::memcpy(&value, values.data() + 4 * i, 4);
    return value;
  }
  cuda::Bf16 value;
  std::memcpy(&value, values.data() + 2 * i, 2);
  return cuda::load(value);
}

/// The largest difference by the largest value; infinite when anything is not finite.
double difference(const std::vector<std::byte>& seen, const std::vector<std::byte>& wanted,
                  Precision precision) {
  const std::size_t count = wanted.size() / (precision == Precision::f32 ? 4 : 2);
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = at(seen, i, precision), right = at(wanted, i, precision);
    if (!std::isfinite(value)) return HUGE_VAL;
    largest = std::max(largest, std::abs(right));
    error = std::max(error, std::abs(value - right));
  }
  return error / std::max(largest, 1e-30);
}

/// A problem's operands on the host, its result by plain loops, and room for that of the device.
class Checked {
 public:
  Checked(Gpu& gpu, const cuda::ConvProblem& problem, std::size_t workspace)
      : gpu_(gpu),
        problem_(problem),
        device_(gpu, problem, workspace),
        src_(random_numbers(problem.src_elements(), problem.precision, 1)),
        dst_(random_numbers(problem.dst_elements(), problem.precision, 2)),
        weight_(random_numbers(problem.weight_elements(), problem.precision, 3)) {
    gpu_.upload(device_.pointers.src, src_.data(), src_.size());
    gpu_.upload(device_.pointers.dst, dst_.data(), dst_.size());
    gpu_.upload(device_.pointers.weight, weight_.data(), weight_.size());
    wanted_ = result();
    cuda::ConvOperands host = {src_.data(), dst_.data(), weight_.data(), nullptr};
    (is_forward() ? host.dst : is_data() ? host.src : host.weight) = wanted_.data();
    cuda::convolve_on_host(problem_, host);
  }

  /// Runs it twice, then captured and replayed.
  Json run(cuda::Convolution& convolution) {
    const auto launch = [&] { convolution.run({0}, device_.pointers); };
    const std::vector<std::byte> once = computed(convolution, launch);
    const std::vector<std::byte> again = computed(convolution, launch);
    Json found = {{"engine", convolution.algorithm()},
                  {"workspace", convolution.workspace_bytes()},
                  {"error_by_largest", difference(once, wanted_, problem_.precision)},
                  {"same_bits_twice", once == again}};
    cuda::CudaGraphExecHandle captured = nullptr;
    try {
      captured = gpu_.capture(launch);
    } catch (const base::Error& error) {  // a fault of the device shows in what follows
      found["cannot_be_captured"] = error.what();
      return found;
    }
    found["same_bits_captured"] = computed(convolution, [&] { gpu_.replay(captured); }) == once;
    return found;
  }

 private:
  [[nodiscard]] bool is_forward() const { return problem_.direction == cuda::ConvDirection::forward; }
  [[nodiscard]] bool is_data() const { return problem_.direction == cuda::ConvDirection::backward_data; }
  [[nodiscard]] const std::vector<std::byte>& result() const {
    return is_forward() ? dst_ : is_data() ? src_ : weight_;
  }
  std::vector<std::byte> computed(cuda::Convolution& convolution, const std::function<void()>& launch) {
    void* const to = is_forward() ? device_.pointers.dst
                     : is_data()  ? device_.pointers.src
                                  : device_.pointers.weight;
    std::vector<std::byte> values(wanted_.size());
    gpu_.fill(to, 0xff, values.size());  // NaN: what is not written shows
    gpu_.fill(device_.pointers.workspace, 0xff, std::max<std::size_t>(convolution.workspace_bytes(), 1));
    launch();
    gpu_.download(values.data(), to, values.size());
    return values;
  }

  Gpu& gpu_;
  cuda::ConvProblem problem_;
  Operands device_;
  std::vector<std::byte> src_, dst_, weight_, wanted_;
};

/// The largest error, and where it was.
struct Worst {
  double error = 0;
  std::string at;
  void see(double value, const std::string& where) {
    if (value < error && !at.empty()) return;
    error = value;
    at = where;
  }
};

std::size_t largest_workspace(const std::vector<cudnn::Plan>& plans) {
  std::size_t most = 0;
  for (const cudnn::Plan& plan : plans) most = std::max(most, plan.workspace_bytes);
  return most;
}

/// Half of some repetitions took less.
double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

Json time_engine(Gpu& gpu, cuda::Convolution& convolution, const Operands& operands, double gflop) {
  for (int i = 0; i < 3; ++i) convolution.run({0}, operands.pointers);
  std::vector<double> times;
  for (int repeat = 0; repeat < 5; ++repeat)
    times.push_back(gpu.milliseconds([&] {
      for (int i = 0; i < 8; ++i) convolution.run({0}, operands.pointers);
    }) / 8);
  const double milliseconds = median_of(std::move(times));
  return {{"engine", convolution.algorithm()},
          {"workspace", convolution.workspace_bytes()},
          {"us", milliseconds * 1e3},
          {"tflop_per_s", gflop / milliseconds}};
}

}  // namespace

namespace {

/// Checks the first `most` engines of each problem.
void check_engines(Findings& findings, int most) {
  Gpu gpu;
  const cuda::CudnnApi api = open_cudnn();
  const cudnn::Connection connection(api);
  const cudnn::TargetDevice device(api, connection.handle());
  const auto streams = [&gpu](cuda::Stream) -> void* { return gpu.stream(); };
  std::map<Precision, Worst> worst;
  int engines = 0, other_bits = 0, not_captured = 0;
  const auto plans_of = [&](const cuda::ConvProblem& problem) {
    if (most > 1) return cudnn::plans_to_measure(device, problem, gpu.workspace_limit(), most);
    std::vector<cudnn::Plan> one;
    one.push_back(cudnn::first_plan(device, problem, gpu.workspace_limit()));
    return one;
  };
  for (const Precision precision : std::set{gpu.precision(), Precision::f32})
    for (const cuda::ConvProblem& problem : resnet_problems(2, precision)) {
      if (!findings.has_time_for(describe(problem))) return;
      findings.attempt(describe(problem), [&] {
        auto plans = plans_of(problem);
        Checked checked(gpu, problem, largest_workspace(plans));
        for (cudnn::Plan& plan : plans) {
          const std::string name = name_of(plan.engine);
          findings.attempt(describe(problem) + ", " + name, [&] {
            const auto convolution = cudnn::make_convolution(connection, streams, std::move(plan));
            const Json one = checked.run(*convolution);
            worst[precision].see(one["error_by_largest"].get<double>(), describe(problem) + ", " + name);
            ++engines;
            other_bits += !one["same_bits_twice"].get<bool>() || !one.value("same_bits_captured", true);
            not_captured += one.contains("cannot_be_captured");
            findings.json["problems"][describe(problem)].push_back(one);
          });
        }
      });
      gpu.free_all();
      findings.json["engines"] = engines;
      findings.json["engines_with_other_bits"] = other_bits;
      findings.json["engines_not_captured"] = not_captured;
      // JSON has no infinity: null is an output that was not finite. In f32 some 1e-7 is what plain sums
      // give, 1e-5 Winograd, 1e-3 TF32, which has no place here.
      findings.json[precision == Precision::f32 ? "worst_f32" : "worst_bf16"] = {
          {"error_by_largest", worst[precision].error}, {"at", worst[precision].at}};
      findings.save();
    }
}

}  // namespace

void check_first_engines(Findings& findings) { check_engines(findings, 1); }
void check_more_engines(Findings& findings) { check_engines(findings, 4); }

void time_convolutions(Findings& findings) {
  Gpu gpu;
  const cuda::CudnnApi api = open_cudnn();
  const cudnn::Connection connection(api);
  const cudnn::TargetDevice device(api, connection.handle());
  const auto streams = [&gpu](cuda::Stream) -> void* { return gpu.stream(); };
  for (const int batch : {128, 512})
    for (const cuda::ConvProblem& problem : resnet_problems(batch, gpu.precision())) {
      if (!findings.has_time_for(describe(problem))) return;
      findings.attempt(describe(problem), [&] {
        const auto begin = std::chrono::steady_clock::now();
        auto plans = cudnn::plans_to_measure(device, problem, gpu.workspace_limit(), 8);
        const std::chrono::duration<double, std::milli> planning = std::chrono::steady_clock::now() - begin;
        const Operands operands(gpu, problem, largest_workspace(plans));
        const double gflop = 2e-9 * static_cast<double>(problem.dst_elements()) * problem.kernel_height *
                             problem.kernel_width * problem.channels_in;
        Json& one = findings.json["problems"][describe(problem)];
        one["gflop"] = gflop;
        one["planning_ms"] = planning.count();
        for (cudnn::Plan& plan : plans) {
          const std::string name = name_of(plan.engine);
          findings.attempt(describe(problem) + ", " + name, [&] {
            const auto convolution = cudnn::make_convolution(connection, streams, std::move(plan));
            one["engines"].push_back(time_engine(gpu, *convolution, operands, gflop));
          });
        }
      });
      gpu.free_all();
      findings.save();
    }
}

}  // namespace paceline::probe
