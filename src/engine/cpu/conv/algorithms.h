#pragma once

/// The table of convolution algorithms, and the rules that choose one for a problem.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

// A ConvAlgorithm is one way to compute convolutions and dense layers: a row of the table in algorithms.cc.

struct ConvAlgorithm {
  std::string name;         ///< one word; `doctor --kernels`, records and tuning caches use it
  std::string family = {};  ///< groups rows for `doctor`: the bf16 unit that they run on
  /// Why it cannot compute the problem on this machine, as the end of a sentence; empty if it can.
  std::function<std::optional<std::string>(const ConvProblem& problem)> refusal;
  /// Whether it should compute the problem if nothing was measured. Called only if refusal() is empty; the
  /// first row that returns true is taken.
  std::function<bool(const ConvProblem& problem)> prefers;
  /// The condition that prefers() checks, as the end of a sentence. It is shown where prefers() is false.
  std::function<std::string(const ConvProblem& problem)> preference;
  /// Number of samples in a chunk of `batch`. It depends on the shape alone, so that the chunks are the same
  /// for any number of threads and on any machine.
  std::function<int(const ConvShape& batch, Direction direction)> chunk;
  /// Makes the kernel that computes forward or backward data for one chunk. Empty if refusal() refuses both
  /// directions. `like` is null or the kernel of another chunk of the same batch; the new kernel must then
  /// read the weights that `like` packs.
  ///
  /// Errors   Error(device) when a library refuses
  std::function<std::unique_ptr<WeightReader>(const ConvShape& chunk, Direction direction,
                                              const WeightReader* like)>
      make_reader = {};
  /// Makes the kernel that computes backward weights for one chunk. `like` is null or the kernel of another
  /// chunk of the same batch; the new kernel must then write the gradient in the order that `like` writes.
  std::function<std::unique_ptr<WgradKernel>(const ConvShape& chunk, const WgradKernel* like)> make_wgrad =
      {};
  /// Whether it reads and writes bf16 but computes in float, and so needs no bf16 unit.
  bool converts_bf16 = false;
  /// Whether autotuning should skip the shape because the algorithm would be very slow. Empty: never.
  std::function<bool(const ConvShape& shape)> is_hopeless = {};
};

/// All algorithms. The project's own come first; oneDNN, which can compute any problem, comes last.
///
/// Threads  any
[[nodiscard]] std::span<const ConvAlgorithm> conv_algorithms();

/// The row with this name; null if there is none.
[[nodiscard]] const ConvAlgorithm* find_algorithm(std::string_view name);

/// A row of each bf16 algorithm with `kernels`, which must outlive it; the preferred ones first. The rows
/// refuse what `unit` refuses; empty: the kernels need no unit, as those of tests.
[[nodiscard]] std::vector<ConvAlgorithm> rows_of(const tiles::TileKernels& kernels,
                                                 std::optional<tiles::Unit> unit);

/// The first of `algorithms` that can compute `problem`; null if none can.
[[nodiscard]] const ConvAlgorithm* first_that_can(std::span<const ConvAlgorithm* const> algorithms,
                                                  const ConvProblem& problem);

/// The algorithm that the rules choose: the first row that can compute `problem` and prefers it. The rules
/// come from measurements on a few machines (docs/decisions/cpu-layout.md, winograd.md, grouped.md).
/// default_algorithm() (default_table.h) uses them where no table of measurements applies.
[[nodiscard]] const ConvAlgorithm& usual_algorithm(const ConvProblem& problem);

/// Lists all algorithms but `chosen` as "NAME TEXT; NAME TEXT"; `about` returns the text of each. If all rows
/// of a family have the same text, the list names the family once.
[[nodiscard]] std::string list_others(const ConvAlgorithm& chosen,
                                      const std::function<std::string(const ConvAlgorithm&)>& about);

/// One sentence that says why `chosen` was taken and not each of the others. `measured`: measured times chose
/// it, not the rules.
[[nodiscard]] std::string why_not_others(const ConvAlgorithm& chosen, const ConvProblem& problem,
                                         bool measured);

}  // namespace paceline::engine::cpu
