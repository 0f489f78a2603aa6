#pragma once

/// The rules that turn gradients into new weights: their numbers, and a table of what is known of each
/// besides its formula.
///
/// Formulas are PyTorch's (torch.optim), LARS that of You et al. (2017) as in: local_lr = trust * |w| / (|g|
/// + weight_decay * |w|), on weights only, momentum on the scaled gradient. A parameter with a rate of its
/// own (graph::Rates) has lr * rate and weight_decay / rate.

#include <span>
#include <string_view>
#include <vector>

namespace paceline::engine {

enum class UpdateKind { sgd, adam, adamw, rmsprop, adadelta, lars };
constexpr int kUpdateKinds = 6;

struct UpdateRule {
  UpdateKind kind = UpdateKind::sgd;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool decay_norm_and_bias = true;    ///< off: weight decay on roles `weight` only (LARS: always off)
  double beta1 = 0.9, beta2 = 0.999;  ///< adam, adamw
  double alpha = 0.99;                ///< rmsprop smoothing
  double rho = 0.9;                   ///< adadelta
  double epsilon = 1e-8;              ///< adam(w), rmsprop 1e-8; adadelta 1e-6
  double trust = 0.001;               ///< lars
  bool operator==(const UpdateRule&) const = default;
};

struct UpdateRuleRow {
  std::string_view name;  ///< on the command line, in recipes and records
  double usual_lr;
  UpdateRule usual;  ///< with it `--optimizer NAME` alone is a sensible training
  /// The arrays of the layout's size that it keeps, by PyTorch's names; empty: none.
  std::string_view state[2];
  bool has_optional_momentum;  ///< it keeps a "momentum_buffer" besides where its momentum is not 0
};

/// By UpdateKind, in its order.
[[nodiscard]] std::span<const UpdateRuleRow> update_rules();

/// What the arrays of optimizer state are called in checkpoints, in the order of their slots.
[[nodiscard]] std::vector<std::string_view> state_names(const UpdateRule& rule);
/// How many there are.
[[nodiscard]] int state_slots(const UpdateRule& rule);

}  // namespace paceline::engine
