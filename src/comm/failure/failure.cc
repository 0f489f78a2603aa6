#include "comm/failure/failure.h"

#include <fmt/format.h>

#include <cstdint>

#include "comm/line_socket.h"

namespace paceline::comm {

std::string line_of(const Failure& failure) {
  const auto detection = failure.detection_s ? fmt::format("{:.0f}", 1e3 * *failure.detection_s) : "-";
  return fmt::format("{} {} {}", static_cast<int>(failure.kind), detection, failure.text);
}

Failure failure_of(std::string_view line) {
  const auto kind = number_of(word_of(line)).value_or(static_cast<std::uint64_t>(base::ErrorKind::comm));
  const auto detection_ms = number_of(word_of(line));
  Failure failure{.kind = static_cast<base::ErrorKind>(kind), .text = std::string(line)};
  if (detection_ms) failure.detection_s = 1e-3 * static_cast<double>(*detection_ms);
  return failure;
}

}  // namespace paceline::comm
