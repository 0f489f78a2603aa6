#include "train/given/names.h"

#include <array>
#include <utility>

#include "base/error.h"

namespace paceline::train {
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

}  // namespace paceline::train
