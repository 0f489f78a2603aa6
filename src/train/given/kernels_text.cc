#include "train/given/kernels_text.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

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

}  // namespace paceline::train
