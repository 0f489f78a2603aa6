#pragma once

/// The units that tests of bf16 tiles run on: the machine's own, and the two emulated in plain C++
/// (kernels/bf16/emulated.inc), which every machine has.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/bf16/support.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu::tiles::emulated {
extern const TileKernels kAmx, kAvx512;
}

namespace paceline::engine::cpu::units {

enum class Unit {
  amx,
  avx512_bf16,
  emulated_amx,     ///< amx in C++: the same tiles and order of additions
  emulated_avx512,  ///< avx512_bf16 in C++, likewise
};
inline constexpr std::array kEmulatedUnits = {Unit::emulated_amx, Unit::emulated_avx512};

/// The unit of the program; empty: emulated.
inline std::optional<tiles::Unit> hardware(Unit unit) {
  if (unit == Unit::amx) return tiles::Unit::amx;
  if (unit == Unit::avx512_bf16) return tiles::Unit::avx512_bf16;
  return std::nullopt;
}

inline const tiles::TileKernels& kernels_of(Unit unit) {
  if (const auto own = hardware(unit)) return tiles::kernels_of(*own);
  return unit == Unit::emulated_amx ? tiles::emulated::kAmx : tiles::emulated::kAvx512;
}
inline std::string_view name_of(Unit unit) { return kernels_of(unit).name; }

/// Why this machine cannot use `unit`; empty if it can.
inline std::optional<std::string> refusal_of(Unit unit) {
  const auto own = hardware(unit);
  return own ? tiles::refusal_of(*own) : std::nullopt;
}

/// The rows of the bf16 algorithms for `unit`, the preferred ones first: those of the program's table, or
/// those of an emulated unit, which it does not contain.
inline std::vector<const ConvAlgorithm*> bf16_algorithms_on(Unit unit) {
  static const auto amx = rows_of(tiles::emulated::kAmx, {}), avx512 = rows_of(tiles::emulated::kAvx512, {});
  const std::span<const ConvAlgorithm> rows = hardware(unit)               ? conv_algorithms()
                                              : unit == Unit::emulated_amx ? amx
                                                                           : std::span(avx512);
  std::vector<const ConvAlgorithm*> found;
  for (const ConvAlgorithm& row : rows)
    if (row.family == name_of(unit)) found.push_back(&row);
  return found;
}

}  // namespace paceline::engine::cpu::units
