#include "analysis/steps/link_fit.h"

#include <cmath>

namespace paceline::analysis {

std::optional<LinkFit> fit_link(std::span<const TimedMessage> messages) {
  if (messages.size() < 3) return std::nullopt;
  // Weights 1 / t^2: the relative errors of all messages count equally.
  double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0;
  for (const auto& message : messages) {
    if (!(message.seconds > 0)) return std::nullopt;
    const double weight = 1 / (message.seconds * message.seconds);
    w += weight;
    wx += weight * message.bytes;
    wxx += weight * message.bytes * message.bytes;
    wt += weight * message.seconds;
    wxt += weight * message.bytes * message.seconds;
  }
  const double determinant = w * wxx - wx * wx;
  if (!(determinant > 0)) return std::nullopt;
  double alpha = (wxx * wt - wx * wxt) / determinant;
  double beta = (w * wxt - wx * wt) / determinant;
  if (alpha < 0) {  // the latency cannot be negative: use the line through the origin
    alpha = 0;
    beta = wxt / wxx;
  }
  if (!(beta > 0)) return std::nullopt;
  LinkFit fit{.alpha_s = alpha, .bytes_per_s = 1 / beta, .residual = 0};
  double squares = 0;
  for (const auto& message : messages) {
    const double error = fit.seconds(message.bytes) / message.seconds - 1;
    squares += error * error;
  }
  fit.residual = std::sqrt(squares / static_cast<double>(messages.size()));
  return fit;
}

}  // namespace paceline::analysis
