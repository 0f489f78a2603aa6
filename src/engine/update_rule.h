#pragma once

/// The update rules (optimizers): their parameters, and a table of what is known of each besides its formula.
///
/// Formulas are those of PyTorch (torch.optim). LARS is that of You et al. (2017): local_lr = trust * |w| /
/// (|g| + weight_decay * |w|), for weights only, with momentum of the scaled gradient. A parameter with a
/// rate of its own (graph::Rates) has lr * rate and weight_decay / rate. LAMB is that of You et al. (2020)
/// with phi(x) = x: a step of weights is lr * |w| / |u| * u, u = m / (sqrt(v) + epsilon) + weight_decay * w
/// of Adam's corrected moments; the quotient is 1, and there is no decay, where LARS has none.

#include <span>
#include <string_view>
#include <vector>

namespace paceline::engine {

enum class UpdateKind { sgd, adam, adamw, rmsprop, adadelta, lars, lamb };
constexpr int kUpdateKinds = 7;

struct UpdateRule {
  UpdateKind kind = UpdateKind::sgd;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool decay_norm_and_bias = true;    ///< false: weight decay on roles `weight` only (LARS, LAMB: always so)
  double beta1 = 0.9, beta2 = 0.999;  ///< adam, adamw, lamb
  double alpha = 0.99;                ///< rmsprop smoothing
  double rho = 0.9;                   ///< adadelta
  double epsilon = 1e-8;              ///< adam(w), rmsprop 1e-8; adadelta, lamb 1e-6
  double trust = 0.001;               ///< lars
  /// > 0: before anything else the gradient of all parameters that learn, as one vector, is scaled to at most
  /// this L2 norm, like torch.nn.utils.clip_grad_norm_.
  double clip_norm = 0;
  /// Of the first moving average.
  [[nodiscard]] constexpr double smoothing() const {
    return kind == UpdateKind::rmsprop ? alpha : kind == UpdateKind::adadelta ? rho : beta1;
  }
  /// What a gradient of this norm is multiplied by; NaN stays NaN.
  [[nodiscard]] constexpr double clip_factor(double norm) const {
    const double factor = clip_norm / (norm + 1e-6);
    return factor >= 1 ? 1 : factor;
  }
  [[nodiscard]] constexpr bool clips() const { return clip_norm > 0; }
  /// Whether each weight (a parameter, not an element) has a rate of its own, which follows from its norm.
  [[nodiscard]] constexpr bool has_layer_rates() const {
    return kind == UpdateKind::lars || kind == UpdateKind::lamb;
  }
  /// The weight decay of a parameter with its own rate (graph::Rates).
  [[nodiscard]] constexpr double decay_of(bool is_weight, double rate) const {
    return is_weight || (decay_norm_and_bias && !has_layer_rates()) ? weight_decay / rate : 0;
  }
  bool operator==(const UpdateRule&) const = default;
};

struct UpdateRuleRow {
  std::string_view name;  ///< on the command line, in recipes and records
  double usual_lr;
  UpdateRule usual;  ///< defaults for `--optimizer NAME`
  /// Its arrays of optimizer state, by PyTorch's names; empty: none. Each has the size of the layout.
  std::string_view state[2] = {};
  bool has_optional_momentum = false;  ///< whether it also keeps a "momentum_buffer" if momentum is not 0
};

/// The rows, indexed by UpdateKind.
[[nodiscard]] std::span<const UpdateRuleRow> update_rules();

/// The names of the arrays of optimizer state in checkpoints, in the order of their slots.
[[nodiscard]] std::vector<std::string_view> state_names(const UpdateRule& rule);
/// The number of these arrays.
[[nodiscard]] int state_slots(const UpdateRule& rule);

}  // namespace paceline::engine
