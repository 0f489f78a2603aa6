#pragma once

/// What was measured once on a kind of processor and now stands in the program: which algorithm is the
/// fastest for which convolution. Unlike engine/kernel_cache.h it is the same in every run on every machine
/// of the kind.

#include <span>
#include <string_view>

#include "engine/cpu/conv/algorithm.h"
#include "engine/cpu/processor_kind.h"

namespace paceline::engine::cpu {

/// One measurement: of these problems `algorithm` was the fastest.
struct DefaultRow {
  Direction direction;
  bool is_dense, in_blocks;
  Storage type;
  int kernel, stride;
  int src_channels, dst_channels, dst_pixels, samples;
  std::string_view algorithm;
};

/// The measurements of one kind of processor, made by bench/kernel_defaults.cc.
struct DefaultTable {
  std::string_view name;  ///< one word: in records, and in a sentence for users
  std::string_view vendor, units;
  int family, model;
  bool is_for_other_vendors;  ///< with the same units: nobody measured theirs, and their rules know less
  std::span<const DefaultRow> rows;
};

/// The tables of the program.
[[nodiscard]] std::span<const DefaultTable> default_tables();

/// The table for processors of `kind`: of the same units, and of several the one of its family and model,
/// then of its vendor, then of another that is for them too; null: nobody measured such a kind.
[[nodiscard]] const DefaultTable* table_for(const ProcessorKind& kind,
                                            std::span<const DefaultTable> tables = default_tables());

/// The algorithm of the row nearest to `problem` among those of the same direction, kernel, stride and
/// storage whose algorithm can compute it. Near: channels, pixels and samples differ by the smallest factors.
/// Null where even the nearest is too far.
[[nodiscard]] const ConvAlgorithm* nearest_choice(const DefaultTable& table, const ConvProblem& problem);

/// The algorithm of `problem` where nobody asked for another and nothing was measured in this run: by the
/// table of this kind of processor, else by the rules of the algorithms (algorithms.h). A function of the two
/// alone.
[[nodiscard]] const ConvAlgorithm& default_algorithm(const ConvProblem& problem);

/// What decides by default here: the table's name, or "rules".
[[nodiscard]] std::string_view default_choices_name();

/// How far a row is from a problem: the factors by which its channels, pixels and (half as much) its samples
/// differ, as binary logarithms times 256. Whole numbers: every processor finds the same one nearest.
/// Negative where they cannot be compared.
[[nodiscard]] int distance(const DefaultRow& row, const ConvProblem& problem);

}  // namespace paceline::engine::cpu
