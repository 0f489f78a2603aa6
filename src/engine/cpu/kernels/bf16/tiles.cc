#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu::tiles {

namespace amx {
extern const TileKernels kTable;
}
namespace avx512_bf16 {
extern const TileKernels kTable;
}
namespace emulated {
extern const TileKernels kAmx, kAvx512;
}

std::string_view name_of(Unit unit) {
  switch (unit) {
    case Unit::amx:
      return "amx";
    case Unit::avx512_bf16:
      return "avx512-bf16";
    case Unit::emulated_amx:
      return "emulated-amx";
    case Unit::emulated_avx512:
      return "emulated-avx512-bf16";
  }
  return "";
}

const TileKernels& kernels_of(Unit unit) {
  switch (unit) {
    case Unit::amx:
      return amx::kTable;
    case Unit::avx512_bf16:
      return avx512_bf16::kTable;
    case Unit::emulated_amx:
      return emulated::kAmx;
    case Unit::emulated_avx512:
      return emulated::kAvx512;
  }
  return emulated::kAmx;
}

}  // namespace paceline::engine::cpu::tiles
