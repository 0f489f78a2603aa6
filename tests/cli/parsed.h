#pragma once

/// What a command line comes to, for tests.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options/arguments.h"

namespace paceline::cli {

inline Settings settings(Command command, const std::vector<std::string>& words) {
  return parse(command, words).settings;
}

inline std::string complaint(Command command, const std::vector<std::string>& words) {
  try {
    (void)parse(command, words);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    return error.what();
  }
  return "";
}

}  // namespace paceline::cli
