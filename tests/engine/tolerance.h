#pragma once

/// How the tests of fast engines compare their results with the reference engine's, by parameter.

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace paceline::engine {

/// How far results may lie from the reference's, by parameter: |a - b|_2 <= relative * |b|_2 + absolute. The
/// factors are of the storage's epsilon (2^-24, bf16 2^-9, fp16 2^-12 by rounding to nearest) times `length`,
/// the root of the longest reduction times the depth of the network: rounding errors add up like a random
/// walk.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};
inline Tolerance tolerance(Precision precision, double length) {
  const double epsilon = precision == Precision::f32    ? 0x1p-24
                         : precision == Precision::bf16 ? 0x1p-9
                                                        : 0x1p-12;
  return {.relative = 4 * epsilon * length, .absolute = 4 * epsilon * length * 5e-2};
}

inline double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += d * d;  // NaN stays, and fails the comparison
  }
  return std::sqrt(sum);
}
inline double length(std::span<const float> a) { return distance(a, std::vector<float>(a.size(), 0.0f)); }

/// Compares two flat arrays slot by slot.
inline void expect_near_by_parameter(const Engine& engine, std::span<const float> got,
                                     std::span<const float> want, Tolerance tolerance,
                                     const std::string& what) {
  for (const graph::Slot& slot : engine.layout().slots) {
    const auto begin = static_cast<std::size_t>(slot.offset), count = static_cast<std::size_t>(slot.elements);
    const auto g = got.subspan(begin, count), w = want.subspan(begin, count);
    EXPECT_LE(distance(g, w), tolerance.relative * length(w) + tolerance.absolute)
        << what << " of " << engine.graph().parameters[static_cast<std::size_t>(slot.parameter)].name
        << ", |want| = " << length(w);
  }
}

}  // namespace paceline::engine
