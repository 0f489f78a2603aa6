#include "engine/cpu/conv/default_table.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "engine/cpu/conv/algorithms.h"

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

}  // namespace

std::span<const DefaultTable> default_tables() { return kTables; }

const DefaultTable* table_for(const ProcessorKind& kind, std::span<const DefaultTable> tables) {
  const DefaultTable* best = nullptr;
  int best_rank = 0;
  for (const DefaultTable& table : tables) {
    if (table.units != kind.units) continue;
    const bool is_vendors = table.vendor == kind.vendor;
    if (!is_vendors && !table.is_for_other_vendors) continue;
    const bool is_familys = is_vendors && table.family == kind.family;
    const bool is_exact = is_familys && table.model == kind.model;
    const int rank = is_exact ? 4 : is_familys ? 3 : is_vendors ? 2 : 1;
    if (rank <= best_rank) continue;
    best = &table;
    best_rank = rank;
  }
  return best;
}

int distance(const DefaultRow& row, const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  if (row.direction != problem.direction || row.is_dense != s.is_dense || row.in_blocks != s.in_blocks ||
      row.type != s.type || row.kernel != s.kernel || row.stride != s.stride)
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

}  // namespace paceline::engine::cpu
