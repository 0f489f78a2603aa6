#pragma once

/// Names, parses and applies the variants of `converge`: a large batch with remedies. A variant's name lists
/// everything that it changes, and is parsed again: "+ linear, warm-up, zero gamma" has three remedies. A
/// name with the last one only would credit it with the effect of all three.

#include <string>
#include <string_view>
#include <vector>

#include "study/study.h"
#include "train/given/options.h"

namespace paceline::study {

/// The values of --variants, for help and errors: "linear, sqrt, warmup, ...".
[[nodiscard]] std::string remedy_words();

/// The name of the variant for `words`: "+ linear, warm-up" for "linear+warmup". "plain" is the large batch
/// without a remedy. A piece key=value that is no remedy becomes "key value"; the caller knows what it
/// changes (ConvergeAxes::changes).
///
/// Errors   Error(usage) for an unknown word (with the nearest one), or one given twice
[[nodiscard]] std::string variant_name(std::string_view words);

/// Applies the remedies of `variant` to `options`, and `axes.changes` for its other pieces.
///
/// Errors   Error(usage) for a name with an unknown piece
void apply_variant(train::Options& options, const std::string& variant, const ConvergeAxes& axes);

/// Whether the variant has no effect with one worker, whose batch norm sees the whole global batch already.
[[nodiscard]] bool needs_several_workers(const std::string& variant);

}  // namespace paceline::study
