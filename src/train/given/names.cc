#include "train/given/names.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

#include "base/error.h"
#include "measure/setting.h"

namespace paceline::train {

std::string as_text(const engine::KernelAlgorithms& algorithms) { return nlohmann::json(algorithms).dump(); }

engine::KernelAlgorithms algorithms_from(const std::string& text, const std::string& where) {
  if (text.empty()) return {};
  try {
    return nlohmann::json::parse(text).get<engine::KernelAlgorithms>();
  } catch (const nlohmann::json::exception& error) {
    base::fail(base::ErrorKind::data, "{}: its 'kernels' cannot be read ({}); take another checkpoint", where,
               error.what());
  }
}

namespace {

using engine::UpdateKind;

constexpr std::array kScheduleKinds{
    std::pair{ScheduleKind::constant, std::string_view("constant")},
    std::pair{ScheduleKind::step, std::string_view("step")},
    std::pair{ScheduleKind::cosine, std::string_view("cosine")},
    std::pair{ScheduleKind::one_cycle, std::string_view("one-cycle")},
    std::pair{ScheduleKind::plateau, std::string_view("plateau")},
};
constexpr std::array kPrecisions{
    std::pair{engine::Precision::f32, std::string_view("fp32")},
    std::pair{engine::Precision::bf16, std::string_view("bf16")},
};
constexpr std::array kTestSets{
    std::pair{TestSet::last, std::string_view("last")},
    std::pair{TestSet::every, std::string_view("every")},
    std::pair{TestSet::never, std::string_view("never")},
};
constexpr std::array kOnNan{
    std::pair{OnNan::stop, std::string_view("stop")},
    std::pair{OnNan::rollback, std::string_view("rollback")},
    std::pair{OnNan::skip, std::string_view("skip")},
};
constexpr std::array kLrScalings{
    std::pair{LrScaling::none, std::string_view("none")},
    std::pair{LrScaling::linear, std::string_view("linear")},
    std::pair{LrScaling::sqrt, std::string_view("sqrt")},
};
constexpr std::array kCropFills{
    std::pair{data::CropFill::black, std::string_view("black")},
    std::pair{data::CropFill::reflect, std::string_view("reflect")},
};
constexpr std::array kFlips{
    std::pair{data::Flip::none, std::string_view("none")},
    std::pair{data::Flip::random, std::string_view("random")},
    std::pair{data::Flip::alternating, std::string_view("alternating")},
};
constexpr std::array kViews{
    std::pair{1, std::string_view("none")},
    std::pair{2, std::string_view("flip")},
    std::pair{6, std::string_view("flip-shift")},
};

template <typename Table, typename Value>
std::string_view name_in(const Table& table, Value value) {
  for (const auto& [candidate, text] : table)
    if (candidate == value) return text;
  return "?";
}

template <typename Table>
auto value_in(const Table& table, std::string_view name) -> std::optional<decltype(table[0].first)> {
  for (const auto& [value, text] : table)
    if (text == name) return value;
  return std::nullopt;
}

template <typename Table>
std::vector<std::string> names_in(const Table& table) {
  std::vector<std::string> names;
  for (const auto& [value, text] : table) names.emplace_back(text);
  return names;
}

bool always(const Options& /*options*/) { return true; }
bool uses_adam(const Options& o) {
  return o.rule.kind == UpdateKind::adam || o.rule.kind == UpdateKind::adamw;
}
bool uses_epsilon(const Options& o) {
  return o.rule.kind != UpdateKind::sgd && o.rule.kind != UpdateKind::lars;
}
bool uses_steps(const Options& o) { return o.schedule.kind == ScheduleKind::step; }
bool uses_one_cycle(const Options& o) { return o.schedule.kind == ScheduleKind::one_cycle; }
bool uses_final_factor(const Options& o) {
  return o.schedule.kind == ScheduleKind::cosine || uses_one_cycle(o);
}
bool uses_plateau(const Options& o) { return o.schedule.kind == ScheduleKind::plateau; }
/// Whether the options hold the test set back. For a data set with a validation part of its own this cannot
/// be known here; the record's `test_set` says it.
bool holds_test_back(const Options& o) {
  return o.window_steps == 0 && test_policy(o, o.validation_split > 0) != TestSet::every;
}
bool uses_lookahead(const Options& o) { return o.lookahead.steps > 0; }

template <UpdateKind kind>
bool uses(const Options& o) {
  return o.rule.kind == kind;
}

std::string text(const auto& value) { return fmt::format("{}", value); }

/// The text of one setting in records. A number that the chosen optimizer or schedule does not read is left
/// out. An option that was added after the first records is left out at its default, so that old and new
/// records of the same run agree.
struct RecordedSetting {
  measure::Setting setting;
  std::string (*text)(const Options& options);
  bool (*is_recorded)(const Options& options) = always;
};

constexpr RecordedSetting kRecorded[] = {
    {"model", [](const Options& o) { return o.model; }},
    {"data", [](const Options& o) { return o.data; }},
    {"device", [](const Options& o) { return o.device; }},
    {"precision", [](const Options& o) { return o.precision; }},
    {"seed", [](const Options& o) { return text(o.seed); }},
    {"augment", [](const Options& o) { return text(o.augment); }},
    {"crop-padding", [](const Options& o) { return text(*o.crop_padding); },
     [](const Options& o) { return o.crop_padding.has_value(); }},
    {"crop-fill", [](const Options& o) { return text(name(o.crop_fill)); },
     [](const Options& o) { return o.crop_fill != data::CropFill::black; }},
    {"flip", [](const Options& o) { return text(name(*o.flip)); },
     [](const Options& o) { return o.flip.has_value(); }},
    {"rotate", [](const Options& o) { return text(o.warp.rotate); },
     [](const Options& o) { return o.warp.rotate > 0; }},
    {"shear", [](const Options& o) { return text(o.warp.shear); },
     [](const Options& o) { return o.warp.shear > 0; }},
    {"shift", [](const Options& o) { return text(o.warp.shift); },
     [](const Options& o) { return o.warp.shift > 0; }},
    {"test-time-augmentation", [](const Options& o) { return text(name_of_views(o.test_views)); },
     [](const Options& o) { return o.test_views != 1; }},
    {"validation-split", [](const Options& o) { return text(o.validation_split); },
     [](const Options& o) { return o.validation_split > 0; }},
    {"bad-images", [](const Options& /*o*/) { return text("skip"); },
     [](const Options& o) { return o.skip_bad_images; }},
    {"label-smoothing", [](const Options& o) { return text(o.label_smoothing); }},
    {"workers", [](const Options& o) { return text(o.workers); }},
    {"threads", [](const Options& o) { return text(o.threads); }},
    {"local-batch", [](const Options& o) { return text(o.local_batch); }},
    {"global-batch", [](const Options& o) { return text(o.global_batch); }},
    {"shard", [](const Options& o) { return text(o.shard); }},
    {"bn", [](const Options& o) { return name(o.batch_norm, o.ghost_size); }},
    {"pin", [](const Options& o) { return text(o.pin); }},
    {"measured-kernels", [](const Options& o) { return text(o.measured_kernels); }},
    {"deterministic", [](const Options& o) { return text(o.deterministic); },
     [](const Options& o) { return o.deterministic; }},
    {"loader-threads", [](const Options& o) { return text(o.loader_threads); }},
    {"bucket-mb", [](const Options& o) { return o.bucket_auto ? "auto" : text(o.bucket_mb); }},
    {"epochs", [](const Options& o) { return text(o.epochs); }},
    {"steps", [](const Options& o) { return text(o.steps); }},
    {"evaluate-every", [](const Options& o) { return text(o.evaluate_every); }},
    {"test-set", [](const Options& o) { return text(name(test_policy(o, o.validation_split > 0))); },
     holds_test_back},
    {"early-stopping", [](const Options& o) { return text(o.early_stopping); },
     [](const Options& o) { return o.early_stopping > 0; }},

    {"optimizer", [](const Options& o) { return text(name(o.rule.kind)); }},
    {"lr", [](const Options& o) { return text(o.lr); }},
    {"scale-lr", [](const Options& o) { return text(name(o.scale_lr)); }},
    {"lr-batch", [](const Options& o) { return text(o.lr_batch); }},
    {"momentum", [](const Options& o) { return text(o.rule.momentum); }},
    {"nesterov", [](const Options& o) { return text(o.rule.nesterov); }},
    {"weight-decay", [](const Options& o) { return text(o.rule.weight_decay); }},
    {"decay-norm-and-bias", [](const Options& o) { return text(o.rule.decay_norm_and_bias); }},
    {"momentum-correction", [](const Options& o) { return text(o.momentum_correction); },
     [](const Options& o) { return o.momentum_correction && o.rule.kind == UpdateKind::lars; }},
    {"zero-gamma", [](const Options& o) { return text(o.zero_gamma); },
     [](const Options& o) { return o.zero_gamma; }},
    {"schedule", [](const Options& o) { return text(name(o.schedule.kind)); }},
    {"warmup", [](const Options& o) { return text(o.schedule.warmup_epochs); }},
    {"warmup-start", [](const Options& o) { return text(o.schedule.warmup_start); },
     [](const Options& o) { return o.schedule.warmup_start > 0 && o.schedule.warmup_epochs > 0; }},
    {"step-epochs", [](const Options& o) { return text(o.schedule.step_epochs); }, uses_steps},
    {"step-factor", [](const Options& o) { return text(o.schedule.step_factor); }, uses_steps},
    {"final-factor", [](const Options& o) { return text(o.schedule.final_factor); }, uses_final_factor},
    {"one-cycle-peak", [](const Options& o) { return text(o.schedule.one_cycle_peak); }, uses_one_cycle},
    {"one-cycle-start", [](const Options& o) { return text(o.schedule.one_cycle_start); }, uses_one_cycle},
    {"plateau-patience", [](const Options& o) { return text(o.schedule.plateau_patience); }, uses_plateau},
    {"plateau-factor", [](const Options& o) { return text(o.schedule.plateau_factor); }, uses_plateau},
    {"beta1", [](const Options& o) { return text(o.rule.beta1); }, uses_adam},
    {"beta2", [](const Options& o) { return text(o.rule.beta2); }, uses_adam},
    {"alpha", [](const Options& o) { return text(o.rule.alpha); }, uses<UpdateKind::rmsprop>},
    {"rho", [](const Options& o) { return text(o.rule.rho); }, uses<UpdateKind::adadelta>},
    {"trust", [](const Options& o) { return text(o.rule.trust); }, uses<UpdateKind::lars>},
    {"epsilon", [](const Options& o) { return text(o.rule.epsilon); }, uses_epsilon},
    {"lookahead", [](const Options& o) { return text(o.lookahead.steps); }, uses_lookahead},
    {"lookahead-keep", [](const Options& o) { return text(o.lookahead.keep); }, uses_lookahead},
    {"lookahead-power", [](const Options& o) { return text(o.lookahead.power); }, uses_lookahead},

    {"on-nan", [](const Options& o) { return text(name(o.on_nan)); },
     [](const Options& o) { return o.on_nan != OnNan::stop; }},
    {"gradients-as", [](const Options& /*o*/) { return text("bf16"); },
     [](const Options& o) { return o.gradients_as_bf16; }},
    {"shared-memory", [](const Options& o) { return text(o.shared_memory); },
     [](const Options& o) { return !o.shared_memory; }},
    {"parallel", [](const Options& /*o*/) { return text("data-parallel"); },
     [](const Options& o) { return o.data_parallel; }},
    {"placement", [](const Options& /*o*/) { return text("spread"); },
     [](const Options& o) { return o.placement == Placement::spread; }},
    {"emulate-link", [](const Options& o) { return o.emulate_link; },
     [](const Options& o) { return !o.emulate_link.empty(); }},
    {"emulate-straggler", [](const Options& o) { return o.emulate_straggler; },
     [](const Options& o) { return !o.emulate_straggler.empty(); }},
    {"emulate-same-order", [](const Options& /*o*/) { return text("yes"); },
     [](const Options& o) { return o.same_order; }},

    {"window-steps", [](const Options& o) { return text(o.window_steps); }},
    {"warmup-steps", [](const Options& o) { return text(o.warmup_steps); }},
    {"window-seconds", [](const Options& o) { return text(o.window_seconds); }},
};

/// Whether the table has exactly one row for each setting that records hold.
consteval bool has_row_of_each() {
  for (std::size_t i = 0; i < measure::Setting::count(); ++i) {
    const auto setting = measure::Setting::at(i);
    const auto rows = std::count_if(std::begin(kRecorded), std::end(kRecorded),
                                    [&](const RecordedSetting& one) { return one.setting == setting; });
    if (rows != (setting.is_recorded() ? 1 : 0)) return false;
  }
  return true;
}
static_assert(has_row_of_each(), "a setting that measure/setting.h says is recorded has no row here, or two");

}  // namespace

std::string_view name(UpdateKind kind) { return engine::update_rules()[static_cast<std::size_t>(kind)].name; }
std::string_view name(ScheduleKind kind) { return name_in(kScheduleKinds, kind); }
std::string_view name(engine::Precision precision) { return name_in(kPrecisions, precision); }
std::string_view name(TestSet policy) { return name_in(kTestSets, policy); }
std::string_view name(OnNan on_nan) { return name_in(kOnNan, on_nan); }
std::string_view name(LrScaling scaling) { return name_in(kLrScalings, scaling); }

std::string_view name(data::CropFill fill) { return name_in(kCropFills, fill); }
std::string_view name(data::Flip flip) { return name_in(kFlips, flip); }
std::string_view name_of_views(int views) { return name_in(kViews, views); }

std::string name(engine::BatchNormMode mode, int ghost_size) {
  switch (mode) {
    case engine::BatchNormMode::local:
      return "local";
    case engine::BatchNormMode::ghost:
      return "ghost:" + std::to_string(ghost_size);
    case engine::BatchNormMode::synchronised:
      return "sync";
  }
  return "?";
}

std::optional<UpdateKind> update_kind(std::string_view name) {
  for (const auto& row : engine::update_rules())
    if (row.name == name) return row.usual.kind;
  return std::nullopt;
}
std::optional<ScheduleKind> schedule_kind(std::string_view name) { return value_in(kScheduleKinds, name); }
std::optional<TestSet> test_set(std::string_view name) { return value_in(kTestSets, name); }
std::optional<OnNan> on_nan(std::string_view name) { return value_in(kOnNan, name); }
std::optional<LrScaling> lr_scaling(std::string_view name) { return value_in(kLrScalings, name); }
std::optional<data::CropFill> crop_fill(std::string_view name) { return value_in(kCropFills, name); }
std::optional<data::Flip> flip(std::string_view name) { return value_in(kFlips, name); }
std::optional<int> views_of_name(std::string_view name) { return value_in(kViews, name); }
std::optional<engine::Precision> precision_of_name(std::string_view name) {
  return value_in(kPrecisions, name);
}

std::vector<std::string> update_kind_names() {
  std::vector<std::string> names;
  for (const auto& row : engine::update_rules()) names.emplace_back(row.name);
  return names;
}
std::vector<std::string> schedule_kind_names() { return names_in(kScheduleKinds); }
std::vector<std::string> test_set_names() { return names_in(kTestSets); }
std::vector<std::string> on_nan_names() { return names_in(kOnNan); }
std::vector<std::string> lr_scaling_names() { return names_in(kLrScalings); }
std::vector<std::string> crop_fill_names() { return names_in(kCropFills); }
std::vector<std::string> flip_names() { return names_in(kFlips); }
std::vector<std::string> views_names() { return names_in(kViews); }

std::map<std::string, std::string> settings(const Options& options) {
  std::map<std::string, std::string> result;
  for (const auto& one : kRecorded)
    if (one.is_recorded(options)) result.emplace(one.setting.key(), one.text(options));
  return result;
}

std::vector<measure::ChangeRecord> differences(const std::map<std::string, std::string>& then,
                                               const std::map<std::string, std::string>& now) {
  std::set<std::string> names;
  for (const auto* settings : {&then, &now})
    for (const auto& [name, value] : *settings) names.insert(name);
  const auto in = [](const std::map<std::string, std::string>& settings, const std::string& name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<measure::ChangeRecord> found;
  for (const auto& name : names)
    if (const auto before = in(then, name), after = in(now, name); before != after)
      found.push_back({.setting = name, .then = before, .now = after});
  return found;
}

}  // namespace paceline::train
