#include "engine/update_rule.h"

#include <iterator>

namespace paceline::engine {
namespace {

/// PyTorch's defaults, and for sgd and lars those of the ResNet literature.
constexpr UpdateRuleRow kRules[] = {
    {.name = "sgd",
     .usual_lr = 0.1,
     .usual = {.kind = UpdateKind::sgd, .momentum = 0.9, .weight_decay = 5e-4},
     .has_optional_momentum = true},
    {.name = "adam",
     .usual_lr = 1e-3,
     .usual = {.kind = UpdateKind::adam},
     .state = {"exp_avg", "exp_avg_sq"}},
    {.name = "adamw",
     .usual_lr = 1e-3,
     .usual = {.kind = UpdateKind::adamw, .weight_decay = 1e-2},
     .state = {"exp_avg", "exp_avg_sq"}},
    {.name = "rmsprop",
     .usual_lr = 1e-3,
     .usual = {.kind = UpdateKind::rmsprop},
     .state = {"square_avg"},
     .has_optional_momentum = true},
    {.name = "adadelta",
     .usual_lr = 1,
     .usual = {.kind = UpdateKind::adadelta, .epsilon = 1e-6},
     .state = {"square_avg", "acc_delta"}},
    {.name = "lars",
     .usual_lr = 1,
     .usual = {.kind = UpdateKind::lars, .momentum = 0.9, .weight_decay = 5e-4},
     .state = {"momentum_buffer"}},
    {.name = "lamb",
     .usual_lr = 1e-3,
     .usual = {.kind = UpdateKind::lamb, .weight_decay = 1e-2, .epsilon = 1e-6},
     .state = {"exp_avg", "exp_avg_sq"}},
};

constexpr bool are_in_order() {
  for (int i = 0; i < kUpdateKinds; ++i)
    if (static_cast<int>(kRules[i].usual.kind) != i) return false;
  return std::size(kRules) == kUpdateKinds;
}
static_assert(are_in_order(), "each UpdateKind has its row, at its place");

}  // namespace

std::span<const UpdateRuleRow> update_rules() { return kRules; }

std::vector<std::string_view> state_names(const UpdateRule& rule) {
  const UpdateRuleRow& row = kRules[static_cast<int>(rule.kind)];
  std::vector<std::string_view> names;
  for (const std::string_view name : row.state)
    if (!name.empty()) names.push_back(name);
  if (row.has_optional_momentum && rule.momentum != 0) names.emplace_back("momentum_buffer");
  return names;
}

int state_slots(const UpdateRule& rule) { return static_cast<int>(state_names(rule).size()); }

}  // namespace paceline::engine
