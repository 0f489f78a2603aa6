#include "train/given/names.h"

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

std::string_view name(engine::UpdateKind kind) {
  return engine::update_rules()[static_cast<std::size_t>(kind)].name;
}

std::string name(engine::BatchNormMode mode, int ghost_size) {
  if (mode == engine::BatchNormMode::ghost) return "ghost:" + std::to_string(ghost_size);
  return mode == engine::BatchNormMode::local ? "local" : "sync";
}

}  // namespace paceline::train
