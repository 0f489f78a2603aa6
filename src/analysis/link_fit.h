#pragma once

/// Latency and bandwidth of a communicator, from the times of one collective over message sizes.
///
///     t(X) = alpha + X / bandwidth        Hockney's model: one message costs alpha, a byte 1 / bandwidth
///
/// The sizes span decades, so the fit minimises relative errors: a plain least-squares line would be that of
/// the largest message alone. It is the model's best, not its proof: `residual` says how far from a straight
/// line the times are (caches, switches of algorithm).

#include <optional>
#include <span>

namespace paceline::analysis {

struct TimedMessage {
  double bytes = 0;
  double seconds = 0;  ///< median
};

struct LinkFit {
  double alpha_s = 0;      ///< at least 0
  double bytes_per_s = 0;  ///< algorithm bandwidth of a long message
  double residual = 0;     ///< root mean square of (t_model - t) / t
  [[nodiscard]] double seconds(double bytes) const { return alpha_s + bytes / bytes_per_s; }
};

/// Nothing for fewer than three sizes, or where time does not grow with them. Pure function.
[[nodiscard]] std::optional<LinkFit> fit_link(std::span<const TimedMessage> messages);

}  // namespace paceline::analysis
