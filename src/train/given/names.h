#pragma once

/// The names of the choices in train::Options, as used on the command line, in recipes, records and tables.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "train/given/options.h"

namespace paceline::train {

/// The names of `Choice`, in the order in which messages list them. A choice without rows here has none.
template <typename Choice>
inline constexpr std::array<std::pair<Choice, std::string_view>, 0> kChoices{};
template <>
inline constexpr std::array<std::pair<ScheduleKind, std::string_view>, 6> kChoices<ScheduleKind>{
    {{ScheduleKind::constant, "constant"},
     {ScheduleKind::step, "step"},
     {ScheduleKind::cosine, "cosine"},
     {ScheduleKind::one_cycle, "one-cycle"},
     {ScheduleKind::plateau, "plateau"},
     {ScheduleKind::polynomial, "polynomial"}}};
template <>
inline constexpr std::array<std::pair<engine::Precision, std::string_view>, 3> kChoices<engine::Precision>{
    {{engine::Precision::f32, "fp32"}, {engine::Precision::bf16, "bf16"}, {engine::Precision::f16, "fp16"}}};
template <>
inline constexpr std::array<std::pair<TestSet, std::string_view>, 3> kChoices<TestSet>{
    {{TestSet::last, "last"}, {TestSet::every, "every"}, {TestSet::never, "never"}}};
template <>
inline constexpr std::array<std::pair<OnNan, std::string_view>, 3> kChoices<OnNan>{
    {{OnNan::stop, "stop"}, {OnNan::rollback, "rollback"}, {OnNan::skip, "skip"}}};
template <>
inline constexpr std::array<std::pair<LrScaling, std::string_view>, 3> kChoices<LrScaling>{
    {{LrScaling::none, "none"}, {LrScaling::linear, "linear"}, {LrScaling::sqrt, "sqrt"}}};
template <>
inline constexpr std::array<std::pair<data::CropFill, std::string_view>, 2> kChoices<data::CropFill>{
    {{data::CropFill::black, "black"}, {data::CropFill::reflect, "reflect"}}};
template <>
inline constexpr std::array<std::pair<data::Flip, std::string_view>, 3> kChoices<data::Flip>{
    {{data::Flip::none, "none"}, {data::Flip::random, "random"}, {data::Flip::alternating, "alternating"}}};

template <typename Choice>
concept NamedChoice = !kChoices<Choice>.empty();

template <NamedChoice Choice>
[[nodiscard]] constexpr std::string_view name(Choice choice) {
  for (const auto& [candidate, text] : kChoices<Choice>)
    if (candidate == choice) return text;
  return "?";
}

/// The inverse: the choice with that name, or nothing.
template <NamedChoice Choice>
[[nodiscard]] constexpr std::optional<Choice> choice_named(std::string_view name) {
  for (const auto& [choice, text] : kChoices<Choice>)
    if (text == name) return choice;
  return std::nullopt;
}

template <NamedChoice Choice>
[[nodiscard]] std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& [choice, text] : kChoices<Choice>) names.emplace_back(text);
  return names;
}

[[nodiscard]] std::string_view name(engine::UpdateKind kind);  ///< "sgd", "adam", ... (engine/update_rule.h)
/// "local", "sync", "ghost:16"
[[nodiscard]] std::string name(engine::BatchNormMode mode, int ghost_size);

// Converts the algorithms of a run to the text in checkpoints and back: one JSON object from convolution
// problem (layer shape and direction) to algorithm.

[[nodiscard]] std::string as_text(const engine::KernelAlgorithms& algorithms);
/// Parses it; an empty text has no algorithms.
///
/// Errors   Error(data) naming `where`, a file
[[nodiscard]] engine::KernelAlgorithms algorithms_from(const std::string& text, const std::string& where);

}  // namespace paceline::train
