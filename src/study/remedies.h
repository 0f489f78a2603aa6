#pragma once

/// The variants that `converge` trains: a large batch with remedies, each named by all that it changes.
///
/// A name is read back: "+ linear, warm-up, zero gamma" has three remedies. A table that praised the last of
/// them alone for what the others gave would compare what nobody trained.

#include <string>
#include <string_view>
#include <vector>

#include "study/study.h"
#include "train/options.h"

namespace paceline::study {

/// What --variants takes, for help and errors: "linear, sqrt, warmup, ...".
[[nodiscard]] std::string remedy_words();

/// The name of the variant that `words` stand for, "linear+warmup" for "+ linear, warm-up"; "plain" is the
/// large batch without remedy. A piece key=value, which is no word of the table, becomes "key value": what it
/// changes is the caller's to know (ConvergeAxes::changes).
///
/// Errors   Error(usage) for an unknown word, with the nearest one; for one that is given twice
[[nodiscard]] std::string variant_name(std::string_view words);

/// Sets what `variant` says into `options`, and what `axes.changes` says of its other pieces.
///
/// Errors   Error(usage) for a name with a piece that neither knows
void apply_variant(train::Options& options, const std::string& variant, const ConvergeAxes& axes);

/// Of one worker it would be nothing: its batch norm sees the whole global batch already.
[[nodiscard]] bool needs_several_workers(const std::string& variant);

}  // namespace paceline::study
