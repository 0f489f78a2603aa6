#pragma once

/// Golden files: what a renderer is expected to write, kept as text that was read by eye.

#include <string>

namespace paceline::report {

/// Expects `actual` to equal tests/golden/<name>. With PACELINE_UPDATE_GOLDEN=1 in the environment the file
/// is written instead (and the test fails once, so that a regeneration cannot pass for a check).
void expect_golden(const std::string& name, const std::string& actual);

}  // namespace paceline::report
