#include "engine/cuda/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/shared_library.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/engine.h"
#include "engine/cuda/program.h"
#include "engine/cuda/runtime/device_runtime.h"
#include "engine/cuda/runtime/host_runtime.h"
#include "engine/kernel_cache.h"

namespace paceline::engine::cuda {
namespace {

/// Another algorithm must take less than this fraction of the default's time. Otherwise noise would decide
/// near ties, and change bits.
constexpr double kClearlyFaster = 0.95;
constexpr int kRounds = 7, kLeastRounds = 3;
constexpr int kRunsOfRound = 3;   ///< runs between two events; their distance is exact to about 0.5 us
constexpr double kEnough = 0.25;  ///< seconds for each problem; more rounds would not help
/// 0.0115 as float and as bf16. Zeros and denormals would have a different speed.
constexpr std::uint8_t kByte = 0x3c;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

using ProblemByKey = std::map<std::string, ConvProblem>;

/// Problems that are measured between two writes of the cache; this takes up to a second.
constexpr std::size_t kPortion = 4;

/// The cache's name for this machine: kind and size of the device (a part of a GPU is a different device),
/// libraries, build of this program.
std::string machine_of(const DeviceFacts& facts) {
  return fmt::format("{}, {} multiprocessors, {}; {}", facts.name, facts.multiprocessors, facts.libraries,
                     base::build_id());
}

/// The end of a note about algorithms that were not measured because they need too much workspace.
std::string sentence_of(const std::vector<std::string>& left_out, std::size_t limit) {
  if (left_out.empty()) return "";
  constexpr std::size_t kNamed = 4;
  std::string text = fmt::format(
      "; {} not measured, for {} would take more than {} MB beside {} operands:",
      left_out.size() == 1 ? "one algorithm was" : fmt::format("{} algorithms were", left_out.size()),
      left_out.size() == 1 ? "it" : "they", limit >> 20, left_out.size() == 1 ? "its" : "their");
  for (std::size_t i = 0; i < left_out.size() && i < kNamed; ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ",", left_out[i]);
  if (left_out.size() > kNamed) text += fmt::format(" and {} more", left_out.size() - kNamed);
  return text;
}

}  // namespace

ConvolutionTimer::ConvolutionTimer(Runtime& runtime)
    : runtime_(runtime),
      stream_(runtime.make_stream()),
      begin_(runtime.make_timed_event()),
      end_(runtime.make_timed_event()) {}

ConvolutionTimer::Sizes ConvolutionTimer::Sizes::of(const ConvProblem& problem) {
  const std::size_t size = problem.precision == Precision::f32 ? 4 : 2;
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements) * size; };
  return {.src = bytes(problem.src_elements()),
          .dst = bytes(problem.dst_elements()),
          .weight = bytes(problem.weight_elements())};
}

ConvolutionTimer::Sizes ConvolutionTimer::Sizes::largest(std::span<const ConvProblem> problems) {
  Sizes most;
  for (const ConvProblem& problem : problems) {
    const Sizes one = of(problem);
    for (const auto of_operand : {&Sizes::src, &Sizes::dst, &Sizes::weight})
      most.*of_operand = std::max(most.*of_operand, one.*of_operand);
  }
  return most;
}

void ConvolutionTimer::reserve(std::span<const ConvProblem> problems) {
  const Sizes most = Sizes::largest(problems);
  for (const auto& [block, bytes] :
       {std::pair(&src_, most.src), std::pair(&dst_, most.dst), std::pair(&weight_, most.weight)})
    static_cast<void>(at_least(*block, bytes));
}

std::size_t ConvolutionTimer::most_bytes(std::span<const ConvProblem> problems, std::size_t workspace) {
  const Sizes most = Sizes::largest(problems);
  // Workspaces that have become too small stay allocated. Their sizes are different powers of two, so all of
  // them together take less than twice the largest.
  return 2 * workspace + allocated_bytes(most.src) + allocated_bytes(most.dst) + allocated_bytes(most.weight);
}

std::byte* ConvolutionTimer::at_least(Block& block, std::size_t bytes) {
  if (bytes <= block.bytes) return block.first;
  // Earlier blocks are freed only with the runtime. The size doubles each time, so that they take at most as
  // much again.
  block.bytes = std::max(bytes, 2 * block.bytes);
  block.first = runtime_.allocate(block.bytes);
  runtime_.fill_bytes(stream_, block.first, kByte, block.bytes);
  return block.first;
}

double ConvolutionTimer::seconds_of(Convolution& convolution, const ConvOperands& operands) {
  runtime_.record(begin_, stream_);
  for (int run = 0; run < kRunsOfRound; ++run) convolution.run(stream_, operands);
  runtime_.record(end_, stream_);
  runtime_.synchronize(end_);
  return runtime_.seconds_between(begin_, end_) / kRunsOfRound;
}

MeasuredConvolution ConvolutionTimer::measure(const ConvProblem& problem) {
  const ConvCandidates candidates = runtime_.convolution_candidates(problem);
  MeasuredConvolution measured{
      .algorithm = candidates.algorithms.front(), .times = {}, .left_out = candidates.left_out};
  const Sizes sizes = Sizes::of(problem);
  std::vector<std::unique_ptr<Convolution>> convolutions;
  std::size_t workspace = 0;
  for (const std::string& algorithm : candidates.algorithms) {
    convolutions.push_back(runtime_.make_convolution(problem, algorithm));
    workspace = std::max(workspace, convolutions.back()->workspace_bytes());
  }
  const ConvOperands operands{
      .src = at_least(src_, sizes.src),
      .dst = at_least(dst_, sizes.dst),
      .weight = at_least(weight_, sizes.weight),
      .workspace = workspace > 0 ? at_least(workspace_, std::bit_ceil(allocated_bytes(workspace))) : nullptr};
  for (const auto& convolution : convolutions) convolution->run(stream_, operands);  // loads the kernels
  std::vector<std::vector<double>> seconds(convolutions.size());
  const auto begin = base::Clock::now();
  for (int round = 0; round < kRounds; ++round) {
    if (round >= kLeastRounds && base::seconds_since(begin) > kEnough) break;
    for (std::size_t i = 0; i < convolutions.size(); ++i)
      seconds[i].push_back(seconds_of(*convolutions[i], operands));
  }
  for (std::size_t i = 0; i < convolutions.size(); ++i)
    measured.times.push_back({.algorithm = candidates.algorithms[i], .seconds = median(seconds[i])});
  const auto& fastest = *std::ranges::min_element(measured.times, {}, &MeasuredConvolution::Time::seconds);
  if (fastest.seconds < kClearlyFaster * measured.times.front().seconds)
    measured.algorithm = fastest.algorithm;
  return measured;
}

PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                        const KernelRequest& request, Runtime& runtime) {
  CompileOptions by_default = options;
  by_default.algorithms = nullptr;
  // Keeps its convolutions until the choice is made, so that plans which are requested again need not be made
  // again.
  const Program program(graph, by_default, runtime);
  const std::vector<ConvChoice> choices = program.convolutions();
  const DeviceFacts facts = runtime.facts();
  KernelProblems named{.chosen_by = facts.is_gpu ? "heuristics" : "rules", .defaults = {}, .refusal = {}};
  ProblemByKey problems;
  for (const ConvChoice& choice : choices) {
    problems.emplace(describe(choice.problem), choice.problem);
    named.defaults[describe(choice.problem)] = choice.algorithm;
  }
  named.refusal = [&](const std::string& key, const std::string& name) -> std::optional<std::string> {
    try {
      static_cast<void>(runtime.make_convolution(problems.at(key), name));
      return std::nullopt;
    } catch (const AlgorithmRefused& refused) {
      return refused.why();
    }
  };
  const std::size_t limit = workspace_limit(facts.memory_bytes);
  std::vector<ConvProblem> all;
  for (const auto& [key, problem] : problems) all.push_back(problem);
  std::vector<std::string> left_out;
  std::optional<ConvolutionTimer> timer;  // one for all portions, since each would allocate its own memory
  std::string no_room;
  const auto measure = [&](const std::vector<std::string>& keys) {
    KernelAlgorithms found;
    if (!timer) {
      // This memory is freed with the runtime before the run allocates any, so no memory plan counts it.
      const auto needed = static_cast<std::int64_t>(ConvolutionTimer::most_bytes(all, limit));
      const auto free = runtime.facts().free_memory_bytes;
      if (facts.is_gpu && needed > free) {
        no_room = fmt::format(
            "problems that were not measured before are computed by the usual kernels for their shape: measuring takes "
            "up to {:.2f} GB of the device's memory, and {:.2f} GB are free",
            static_cast<double>(needed) / 1e9, static_cast<double>(free) / 1e9);
        return found;
      }
      timer.emplace(runtime).reserve(all);
    }
    for (const std::string& key : keys) {
      MeasuredConvolution measured = timer->measure(problems.at(key));
      found[key] = measured.algorithm;
      left_out.insert(left_out.end(), measured.left_out.begin(), measured.left_out.end());
    }
    return found;
  };
  PreparedKernels prepared = choose_kernels(
      named, request,
      {.open_cache =
           [&] {
             // Only the device knows its algorithms; choose_kernels() does not take what it refuses.
             return KernelCache(base::cache_directory(), machine_of(facts), [](const auto&) { return true; });
           },
       .measure = measure,
       .portion = kPortion});
  if (!prepared.note.empty()) prepared.note += sentence_of(left_out, limit);
  if (!no_room.empty()) prepared.note += (prepared.note.empty() ? "kernels: " : "; ") + no_room;
  return prepared;
}

AutoPrecision auto_precision(int compute_capability) {
  if (has_bf16_units(compute_capability))
    return {Precision::bf16, "GPUs from compute capability 8.0 on have units for it"};
  return {Precision::f32,
          fmt::format("a GPU of compute capability {}.{} has no units for bf16, which begin with 8.0",
                      compute_capability / 10, compute_capability % 10)};
}

}  // namespace paceline::engine::cuda

// The CUDA engine on the processor, as one of the devices that engine/make.cc lists.

namespace paceline::engine::cuda_on_host {

std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options) {
  return cuda::compile(graph, options, std::make_unique<cuda::HostRuntime>(), {.name = "cuda-on-host"});
}
graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options) {
  cuda::HostRuntime runtime;
  return cuda::plan(graph, options, runtime);
}
PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                        const KernelRequest& request) {
  cuda::HostRuntime runtime;
  PreparedKernels prepared = cuda::prepare(graph, options, request, runtime);
  prepared.note = "no GPU: the CUDA engine on the processor; its times say nothing about any GPU" +
                  (prepared.note.empty() ? "" : "; " + prepared.note);
  return prepared;
}
AutoPrecision auto_precision() { return {Precision::f32, "its loops emulate bf16, which takes longer"}; }

}  // namespace paceline::engine::cuda_on_host
