#pragma once

/// The options that a text names.

#include <string>
#include <vector>

#include "cli/options/options.h"

namespace paceline::cli {

/// "lr" and "epochs" of "--lr X, or --epochs".
inline std::vector<std::string> options_named_in(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at + 2)) {
    const std::size_t begin = at + 2;
    const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", begin);
    if (const auto name = text.substr(begin, end - begin); !name.empty()) names.push_back(name);
  }
  return names;
}

}  // namespace paceline::cli
