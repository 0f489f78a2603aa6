#include "engine/cuda/measure_convolutions.h"

#include <algorithm>
#include <memory>

#include "base/clock.h"

namespace paceline::engine::cuda {
namespace {

/// Of the default's time: what another one must stay below. Near ties would fall either way, and change bits.
constexpr double kClearlyFaster = 0.95;
constexpr int kRounds = 7, kLeastRounds = 3;
constexpr int kRunsOfRound = 3;   ///< between two events, whose distances are about 0.5 us exact
constexpr double kEnough = 0.25;  ///< seconds for a problem, beyond which more rounds would only cost
/// 0.0115 in both storages: neither zeros nor denormals, which have a speed of their own.
constexpr std::uint8_t kByte = 0x3c;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

ConvolutionTimer::ConvolutionTimer(Runtime& runtime)
    : runtime_(runtime),
      stream_(runtime.make_stream()),
      begin_(runtime.make_timed_event()),
      end_(runtime.make_timed_event()) {}

std::byte* ConvolutionTimer::at_least(Block& block, std::size_t bytes) {
  if (bytes <= block.bytes) return block.first;
  // What it had is freed with the runtime: twice as much each time, so that all of them are at most twice.
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
  std::vector<std::unique_ptr<Convolution>> convolutions;
  std::size_t workspace = 0;
  for (const std::string& algorithm : candidates.algorithms) {
    convolutions.push_back(runtime_.make_convolution(problem, algorithm));
    workspace = std::max(workspace, convolutions.back()->workspace_bytes());
  }
  const std::size_t size = problem.precision == Precision::f32 ? 4 : 2;
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements) * size; };
  const ConvOperands operands{.src = at_least(src_, bytes(problem.src_elements())),
                              .dst = at_least(dst_, bytes(problem.dst_elements())),
                              .weight = at_least(weight_, bytes(problem.weight_elements())),
                              .workspace = workspace > 0 ? at_least(workspace_, workspace) : nullptr};
  for (const auto& convolution : convolutions) convolution->run(stream_, operands);  // loads its kernels
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

}  // namespace paceline::engine::cuda
