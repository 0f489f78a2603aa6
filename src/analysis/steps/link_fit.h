#pragma once

/// Fits latency and bandwidth of a communicator to the times of one collective over message sizes.
///
///     t(X) = alpha + X / bandwidth        Hockney's model: one message costs alpha, a byte 1 / bandwidth
///
/// The sizes span decades, so the fit minimises relative errors; plain least squares would fit only the
/// largest message. `residual` says how well the model fits: caches and switches of algorithm bend the line.

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

/// Nothing for fewer than three sizes, or if time does not grow with size. A pure function.
[[nodiscard]] std::optional<LinkFit> fit_link(std::span<const TimedMessage> messages);

}  // namespace paceline::analysis
