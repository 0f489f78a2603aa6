#pragma once

/// Tables, compiled into the program, of the fastest algorithm for each convolution that was measured on a
/// kind of processor. All machines of that kind make the same choices, unlike with --measured-kernels.

#include <span>
#include <string_view>
#include <vector>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/processor_kind.h"

namespace paceline::engine::cpu {

/// Returns the fastest algorithm for the whole batch, estimated from the times of a few chunks on the calling
/// thread. The estimate includes packing the weights (once an update) and adding the gradients of chunks. The
/// default algorithm wins unless another one is clearly faster, so that noise does not
/// change the choice.
///
/// Cost      some milliseconds for each algorithm for a convolution of a ResNet; memory for one chunk of
///           each, at least 6 MB
/// Requires  a OneThread (parallel.h) exists on the calling thread
/// Threads   any
[[nodiscard]] const ConvAlgorithm* autotune(const ConvProblem& problem);

/// What `measure` finds of each problem: on all cores at once, as crowded as training will be.
///
/// Threads  `measure` is called from several, each in a OneThread
using MeasureProblem = const ConvAlgorithm* (*)(const ConvProblem& problem);
[[nodiscard]] std::vector<const ConvAlgorithm*> side_by_side(const std::vector<ConvProblem>& problems,
                                                             MeasureProblem measure);

/// The seconds that it compares: of the whole batch, on one thread.
[[nodiscard]] double seconds_of(const ConvProblem& problem, const ConvAlgorithm& algorithm);

/// One measurement: `algorithm` was the fastest for this problem. Fields as in ConvShape; a dense layer
/// counts all elements of its input as channels.
struct DefaultRow {
  Direction direction;
  bool is_dense, in_blocks;
  Storage type;
  int kernel, stride;
  int src_channels, dst_channels, dst_pixels, samples;
  std::string_view algorithm;
};

/// The measurements of one kind of processor. bench/kernel_defaults.cc prints the rows.
struct DefaultTable {
  std::string_view name;           ///< one word, for records and messages
  std::string_view vendor, units;  ///< as in ProcessorKind
  int family, model;
  bool is_for_other_vendors;  ///< whether it also serves unmeasured vendors with the same units
  std::span<const DefaultRow> rows;
};

/// All tables.
[[nodiscard]] std::span<const DefaultTable> default_tables();

/// The table for processors of `kind`, among those for the same units: one of the same family and model, else
/// of the same family, else of the same vendor, else one that is_for_other_vendors. Null if there is none.
[[nodiscard]] const DefaultTable* table_for(const ProcessorKind& kind,
                                            std::span<const DefaultTable> tables = default_tables());

/// The algorithm of the row that is nearest to `problem` by distance(), among the rows whose algorithm can
/// compute it. Null if even that row is too far away.
[[nodiscard]] const ConvAlgorithm* nearest_choice(const DefaultTable& table, const ConvProblem& problem);

/// The algorithm of `problem` unless the user chose another or this run measured: from the table for this
/// kind of processor, else by the rules (usual_algorithm()). It depends on `problem` and the kind of
/// processor alone.
[[nodiscard]] const ConvAlgorithm& default_algorithm(const ConvProblem& problem);

/// What default_algorithm() uses on this machine: the name of a table, or "rules".
[[nodiscard]] std::string_view default_choices_name();

/// The distance of a row from a problem: the sum of |log2| of the ratios of input channels, output channels,
/// output pixels and (at half weight) samples, times 256. It is an integer, so that every processor finds the
/// same nearest row. Negative if the row is for another direction, kernel, stride, storage or kind of layer;
/// rows are for one group of channels.
[[nodiscard]] int distance(const DefaultRow& row, const ConvProblem& problem);

}  // namespace paceline::engine::cpu
