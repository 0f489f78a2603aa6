#include "engine/cpu/conv/default_table.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/thread_pool.h"
#include "base/topology.h"
#include "engine/cpu/conv/batch_split.h"
#include "engine/cpu/kernels/kernels.h"
#include "engine/program.h"

namespace paceline::engine::cpu {
namespace {

/// Rows farther away than this are ignored: the factors between the sizes multiply to 16.
constexpr int kTooFar = 4 * 256;

/// 256 times the binary logarithm, linear between powers of two; the error is at most 22.
int log2_256(std::int64_t value) {
  const int whole = std::bit_width(static_cast<std::uint64_t>(value)) - 1;
  return 256 * whole + static_cast<int>((value << 8 >> whole) - 256);
}

int factor(std::int64_t a, std::int64_t b) { return std::abs(log2_256(a) - log2_256(b)); }

/// For a dense layer every element of the image is a channel.
std::int64_t src_channels(const ConvShape& s) { return s.is_dense ? s.src.elements() : s.src.channels; }

constexpr auto kForward = Direction::forward, kBackwardData = Direction::backward_data,
               kBackwardWeights = Direction::backward_weights;
constexpr auto kF32 = Storage::f32, kBf16 = Storage::bf16;

constexpr DefaultRow kZen5Avx512Bf16[] = {
#include "engine/cpu/conv/defaults/amd_zen5_avx512_bf16.inc"
};

constexpr DefaultRow kZen4Avx512Bf16[] = {
#include "engine/cpu/conv/defaults/amd_zen4_avx512_bf16.inc"
};

constexpr std::array kTables = {
    DefaultTable{.name = "amd-zen5-avx512-bf16",
                 .vendor = "AuthenticAMD",
                 .units = "avx512-bf16",
                 .family = 26,
                 .model = 2,
                 .is_for_other_vendors = true,
                 .rows = kZen5Avx512Bf16},
    DefaultTable{.name = "amd-zen4-avx512-bf16",
                 .vendor = "AuthenticAMD",
                 .units = "avx512-bf16",
                 .family = 25,
                 .model = 17,
                 .is_for_other_vendors = false,
                 .rows = kZen4Avx512Bf16},
};

/// Another algorithm is chosen only if its time is below this fraction of the usual one's
/// (docs/decisions/measured-kernels.md).
constexpr double kClearly = 0.8, kClearlyInBf16 = 0.9;
constexpr double kHopeless = 2;  ///< a candidate slower than the best by this factor is dropped
constexpr int kLeastRuns = 2;    ///< the first run is a warm-up
/// Seconds spent on a problem after which more runs are not worth their time.
constexpr double kEnough = 0.12;
constexpr int kRuns = 8;
/// Bytes of src and dst together; larger than the caches of one core.
constexpr std::int64_t kFarBytes = 6 << 20;

/// Numbers of both signs around 0.1: no zeros and no denormals, whose speed can differ.
base::Buffer numbers(std::int64_t count, Storage type) {
  constexpr std::size_t kPeriod = 1024;
  base::Buffer buffer(static_cast<std::size_t>(whole_lines(count * bytes_of(type))));
  for (std::size_t i = 0; i < std::min(kPeriod, buffer.bytes() / 4); ++i) {
    const float number = 0.01F * static_cast<float>(static_cast<int>(i % 23) - 11) + 0.005F;
    std::memcpy(buffer.data() + 4 * i, &number, 4);
    // bf16 is the upper half of a float; here twice.
    if (type == Storage::bf16) std::memcpy(buffer.data() + 4 * i, buffer.data() + 4 * i + 2, 2);
  }
  for (std::size_t at = 4 * kPeriod; at < buffer.bytes(); at += 4 * kPeriod)
    std::memcpy(buffer.data() + at, buffer.data(), std::min(4 * kPeriod, buffer.bytes() - at));
  return buffer;
}

/// The thread's own processor time, so that other processes on the core do not count.
template <typename Call>
void time_once(const Call& call, double& least) {
  const double begin = base::thread_processor_s();
  call();
  least = std::min(least, base::thread_processor_s() - begin);
}

/// One algorithm for a chunk of the problem, set up so that it can be timed repeatedly.
class Candidate {
 public:
  Candidate(const ConvProblem& problem, const ConvAlgorithm& algorithm)
      : algorithm_(algorithm),
        is_gradient_(problem.direction == Direction::backward_weights),
        readers_(is_gradient_ ? std::nullopt : std::optional(readers_of(problem, algorithm))),
        wgrads_(is_gradient_ ? std::optional(wgrads_of(problem, algorithm)) : std::nullopt),
        dst_type_(problem.direction == Direction::forward ? problem.shape.dst_type : problem.shape.type),
        src_bytes_(problem.shape.src.elements() * bytes_of(problem.shape.type)),
        dst_bytes_(problem.shape.dst.elements() * bytes_of(dst_type_)),
        held_(static_cast<int>(std::clamp<std::int64_t>(kFarBytes / (src_bytes_ + dst_bytes_),
                                                        chunks_.size(0), problem.shape.samples))),
        src_(numbers(held_ * problem.shape.src.elements(), problem.shape.type)),
        dst_(numbers(held_ * problem.shape.dst.elements(), dst_type_)),
        weights_(numbers(problem.shape.weights(), Storage::f32)),
        packed_(numbers(packed_floats(), Storage::f32)),
        sum_(numbers(is_gradient_ ? packed_floats() : 0, Storage::f32)),
        bias_(numbers(problem.shape.dst.channels, Storage::f32)),
        scratchpad_(static_cast<std::size_t>(
            whole_lines(is_gradient_ ? wgrads_->scratchpad_bytes() : readers_->scratchpad_bytes()))) {}

  [[nodiscard]] const ConvAlgorithm* algorithm() const { return &algorithm_; }

  void run() {
    auto* packed = packed_.as<float>().data();
    auto* weights = weights_.as<float>().data();
    auto* bias = bias_.as<float>().data();
    if (is_gradient_) {
      time_once([&] { wgrads_->any().unpack(here_, packed, weights); }, update_);
      time_once([&] { own_.accumulate(packed, sum_.as<float>().data(), packed_floats()); }, join_);
    } else {
      time_once([&] { readers_->any().pack(weights, packed); }, update_);
      join_ = 0;
    }
    Operands operands{
        .packed = packed, .bias = bias, .d_weight = packed, .d_bias = bias, .scratchpad = scratchpad_.data()};
    const auto run_chunk = [&] {
      operands.src = operands.d_src = src_.data() + first_ * src_bytes_;
      operands.d_dst = operands.dst = dst_.data() + first_ * dst_bytes_;
      first_ += chunks_.size(0);
      if (first_ + chunks_.size(0) > held_) first_ = 0;
      for (int part = 0; part < kernel_.parts(); ++part) kernel_.run(operands, part);
    };
    time_once(run_chunk, first_chunk_);
    if (chunks_.count() > 1) time_once(run_chunk, next_chunk_);
  }

  /// Seconds for the whole batch, from the shortest time of each part so far.
  [[nodiscard]] double seconds() const {
    if (chunks_.count() == 1) return update_ + first_chunk_;
    return update_ + first_chunk_ + (chunks_.count() - 1) * (next_chunk_ + join_);
  }

 private:
  static ChunkKernels<WeightReader> readers_of(const ConvProblem& problem, const ConvAlgorithm& algorithm) {
    return {problem.shape, algorithm.chunk(problem.shape, problem.direction),
            [&](const ConvShape& chunk, const WeightReader* like) {
              return algorithm.make_reader(chunk, problem.direction, like);
            }};
  }
  static ChunkKernels<WgradKernel> wgrads_of(const ConvProblem& problem, const ConvAlgorithm& algorithm) {
    return {problem.shape, algorithm.chunk(problem.shape, problem.direction), algorithm.make_wgrad};
  }

  [[nodiscard]] std::int64_t packed_floats() const { return (kernel_.packed_bytes() + 3) / 4; }

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  const ConvAlgorithm& algorithm_;
  const bool is_gradient_;
  const std::optional<ChunkKernels<WeightReader>> readers_;  ///< forward and backward data
  const std::optional<ChunkKernels<WgradKernel>> wgrads_;    ///< backward weights
  const BatchSplit& chunks_ = readers_ ? static_cast<const BatchSplit&>(*readers_) : *wgrads_;
  const ConvKernel& kernel_ = readers_ ? static_cast<const ConvKernel&>(readers_->any()) : wgrads_->any();
  const Storage dst_type_;
  const std::int64_t src_bytes_, dst_bytes_;  ///< of a sample
  const int held_;                            ///< samples in memory; each chunk uses the next ones
  int first_ = 0;
  base::Buffer src_, dst_, weights_, packed_, sum_, bias_, scratchpad_;
  base::ThreadPool here_{1};
  const Kernels& own_ = kernels_for(isas_here().back());
  double update_ = kNever;  ///< once an update: packing weights, unpacking their gradient
  /// With weights (or a gradient) in the cache level in which packing left them.
  double first_chunk_ = kNever;
  double next_chunk_ = kNever;  ///< with weights (or a gradient) that the chunk before has just used
  double join_ = kNever;        ///< for each chunk but the first: its gradient added to the others'
};

/// The fastest of `algorithms`, but `usual`, which is one of them, unless another is clearly faster.
const ConvAlgorithm* winner(const ConvProblem& problem, std::span<const ConvAlgorithm* const> algorithms,
                            const ConvAlgorithm* usual) {
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (const ConvAlgorithm* algorithm : algorithms)
    candidates.push_back(std::make_unique<Candidate>(problem, *algorithm));
  const auto by_seconds = [](const auto& a, const auto& b) { return a->seconds() < b->seconds(); };
  // Candidates run in turns, so that a slow moment of the machine affects all of them.
  const auto begin = base::Clock::now();
  for (int run = 0; run < kRuns && (run < kLeastRuns || base::seconds_since(begin) < kEnough); ++run) {
    for (auto& candidate : candidates) candidate->run();
    if (run + 1 < kLeastRuns) continue;
    const double best = (*std::ranges::min_element(candidates, by_seconds))->seconds();
    std::erase_if(candidates, [&](const auto& candidate) {
      return candidate->algorithm() != usual && candidate->seconds() > kHopeless * best;
    });
  }
  const auto& best = *std::ranges::min_element(candidates, by_seconds);
  const auto& known =
      *std::ranges::find_if(candidates, [&](const auto& r) { return r->algorithm() == usual; });
  const double margin = problem.shape.type == Storage::bf16 ? kClearlyInBf16 : kClearly;
  return best->seconds() < margin * known->seconds() ? best->algorithm() : usual;
}

}  // namespace

std::span<const DefaultTable> default_tables() { return kTables; }

const DefaultTable* table_for(const ProcessorKind& kind, std::span<const DefaultTable> tables) {
  const auto rank = [&](const DefaultTable& table) {
    if (table.units != kind.units) return 0;
    if (table.vendor != kind.vendor) return table.is_for_other_vendors ? 1 : 0;
    if (table.family != kind.family) return 2;
    return table.model != kind.model ? 3 : 4;
  };
  const auto best = std::ranges::max_element(tables, {}, rank);
  return best == tables.end() || rank(*best) == 0 ? nullptr : &*best;
}

int distance(const DefaultRow& row, const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  if (row.direction != problem.direction || row.is_dense != s.is_dense || row.in_blocks != s.in_blocks ||
      row.type != s.type || s.groups > 1 || s.uneven || row.kernel != s.kernel || row.stride != s.stride)
    return -1;
  return factor(row.src_channels, src_channels(s)) + factor(row.dst_channels, s.dst.channels) +
         factor(row.dst_pixels, s.dst_pixels()) + factor(row.samples, s.samples) / 2;
}

const ConvAlgorithm* nearest_choice(const DefaultTable& table, const ConvProblem& problem) {
  const ConvAlgorithm* nearest = nullptr;
  int least = kTooFar;
  for (const DefaultRow& row : table.rows) {
    const int far = distance(row, problem);
    if (far < 0 || far >= least) continue;
    const ConvAlgorithm* const algorithm = find_algorithm(row.algorithm);
    if (algorithm == nullptr || algorithm->refusal(problem)) continue;
    nearest = algorithm;
    least = far;
  }
  return nearest;
}

const ConvAlgorithm& default_algorithm(const ConvProblem& problem) {
  const DefaultTable* const table = table_for(processor_here());
  const ConvAlgorithm* const found = table != nullptr ? nearest_choice(*table, problem) : nullptr;
  return found != nullptr ? *found : usual_algorithm(problem);
}

std::string_view default_choices_name() {
  const DefaultTable* const table = table_for(processor_here());
  return table != nullptr ? table->name : "rules";
}

double seconds_of(const ConvProblem& problem, const ConvAlgorithm& algorithm) {
  Candidate alone(problem, algorithm);
  for (int run = 0; run < kRuns; ++run) alone.run();
  return alone.seconds();
}

std::vector<const ConvAlgorithm*> side_by_side(const std::vector<ConvProblem>& problems,
                                               MeasureProblem measure) {
  constexpr int kMostThreads = 16;  // each thread holds the arrays of a problem
  const int count = static_cast<int>(problems.size());
  std::vector<const ConvAlgorithm*> found(problems.size());
  base::ThreadPool pool(std::clamp(count, 1, std::min(base::usable_cores(), kMostThreads)),
                        [] { omp_set_num_threads(1); });
  pool.run(count, [&](int i, int) {
    found[static_cast<std::size_t>(i)] = measure(problems[static_cast<std::size_t>(i)]);
  });
  return found;
}

const ConvAlgorithm* autotune(const ConvProblem& problem) {
  const ConvAlgorithm* const usual = &default_algorithm(problem);
  std::vector<const ConvAlgorithm*> algorithms;
  for (const ConvAlgorithm& row : conv_algorithms()) {
    const bool is_worth_it = !row.is_hopeless || !row.is_hopeless(problem.shape);
    if (&row == usual || (!row.refusal(problem) && is_worth_it)) algorithms.push_back(&row);
  }
  if (algorithms.size() == 1) return usual;
  const ConvAlgorithm* const found = winner(problem, algorithms, usual);
  // Measured again in different memory: the winner may only have had a lucky position. Only the usual one and
  // the winner take part.
  return found == usual ? usual : winner(problem, std::array{usual, found}, usual);
}

}  // namespace paceline::engine::cpu
