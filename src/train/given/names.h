#pragma once

/// The names of the choices in train::Options, as used on the command line, in recipes, records and tables.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "train/given/options.h"

namespace paceline::train {

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
