#pragma once

/// Tests of bf16 tiles that run for every unit: emulated ones everywhere, the machine's own where it has
/// them.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

class OnUnit : public testing::TestWithParam<tiles::Unit> {
 protected:
  void SetUp() override {
    if (const auto refused = tiles::refusal_of(GetParam()))
      GTEST_SKIP() << tiles::name_of(GetParam()) << " " << *refused;
  }
  [[nodiscard]] const tiles::TileKernels& kernels() const { return tiles::kernels_of(GetParam()); }
};

inline auto every_unit() {
  return testing::Values(tiles::Unit::emulated_amx, tiles::Unit::emulated_avx512, tiles::Unit::amx,
                         tiles::Unit::avx512_bf16);
}
/// As the names of tests may be written.
inline std::string name_of_unit(const testing::TestParamInfo<tiles::Unit>& unit) {
  std::string name(tiles::name_of(unit.param));
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace paceline::engine::cpu
