#pragma once

/// The names of the choices in train::Options, as used on the command line, in recipes, records and tables.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "measure/record.h"
#include "train/given/options.h"

namespace paceline::train {

/// The options that can change a figure, as the record has them: command-line names and texts.
[[nodiscard]] std::map<std::string, std::string> settings(const Options& options);

/// All settings in which two runs differ, by name; `update` stays 0. A setting that only some choices use is
/// absent otherwise; if one side lacks it, that is a difference too.
[[nodiscard]] std::vector<measure::ChangeRecord> differences(const std::map<std::string, std::string>& then,
                                                             const std::map<std::string, std::string>& now);

// Converts the algorithms of a run to the text in checkpoints and back: one JSON object from convolution
// problem (layer shape and direction) to algorithm.

[[nodiscard]] std::string as_text(const engine::KernelAlgorithms& algorithms);
/// Parses it; an empty text has no algorithms.
///
/// Errors   Error(data) naming `where`, a file
[[nodiscard]] engine::KernelAlgorithms algorithms_from(const std::string& text, const std::string& where);

[[nodiscard]] std::string_view name(engine::UpdateKind kind);  ///< "sgd", "adam", ...
/// "constant", "step", "cosine", "one-cycle", "plateau"
[[nodiscard]] std::string_view name(ScheduleKind kind);
[[nodiscard]] std::string_view name(engine::Precision precision);  ///< "fp32", "bf16"
[[nodiscard]] std::string_view name(TestSet policy);               ///< "every", "last", "never"
[[nodiscard]] std::string_view name(OnNan on_nan);                 ///< "stop", "rollback", "skip"
[[nodiscard]] std::string_view name(LrScaling scaling);            ///< "none", "linear", "sqrt"
[[nodiscard]] std::string_view name(data::CropFill fill);          ///< "black", "reflect"
[[nodiscard]] std::string_view name(data::Flip flip);              ///< "none", "random", "alternating"
[[nodiscard]] std::string_view name_of_views(int views);           ///< 1, 2, 6: "none", "flip", "flip-shift"
/// "local", "sync", "ghost:16"
[[nodiscard]] std::string name(engine::BatchNormMode mode, int ghost_size);

/// The inverse: the choice with that name, or nothing.
[[nodiscard]] std::optional<engine::UpdateKind> update_kind(std::string_view name);
[[nodiscard]] std::optional<ScheduleKind> schedule_kind(std::string_view name);
[[nodiscard]] std::optional<TestSet> test_set(std::string_view name);
[[nodiscard]] std::optional<OnNan> on_nan(std::string_view name);
[[nodiscard]] std::optional<LrScaling> lr_scaling(std::string_view name);
[[nodiscard]] std::optional<data::CropFill> crop_fill(std::string_view name);
[[nodiscard]] std::optional<data::Flip> flip(std::string_view name);
[[nodiscard]] std::optional<int> views_of_name(std::string_view name);
[[nodiscard]] std::optional<engine::Precision> precision_of_name(std::string_view name);

[[nodiscard]] std::vector<std::string> update_kind_names();
[[nodiscard]] std::vector<std::string> schedule_kind_names();
[[nodiscard]] std::vector<std::string> test_set_names();
[[nodiscard]] std::vector<std::string> on_nan_names();
[[nodiscard]] std::vector<std::string> lr_scaling_names();
[[nodiscard]] std::vector<std::string> crop_fill_names();
[[nodiscard]] std::vector<std::string> flip_names();
[[nodiscard]] std::vector<std::string> views_names();

}  // namespace paceline::train
