#pragma once

/// Tests of bf16 tiles that run for every unit: emulated ones everywhere, the machine's own where it has
/// them.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/cpu/kernels/bf16/tiles.h"
#include "engine/cpu/units.h"

namespace paceline::engine::cpu {

class OnUnit : public testing::TestWithParam<units::Unit> {
 protected:
  void SetUp() override {
    if (const auto refused = units::refusal_of(GetParam()))
      GTEST_SKIP() << units::name_of(GetParam()) << " " << *refused;
  }
  [[nodiscard]] const tiles::TileKernels& kernels() const { return units::kernels_of(GetParam()); }
};

inline auto every_unit() {
  return testing::Values(units::Unit::emulated_amx, units::Unit::emulated_avx512, units::Unit::amx,
                         units::Unit::avx512_bf16);
}
/// As the names of tests may be written.
inline std::string name_of_unit(const testing::TestParamInfo<units::Unit>& unit) {
  std::string name(units::name_of(unit.param));
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace paceline::engine::cpu
