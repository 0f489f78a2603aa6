#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu::tiles {

namespace amx {
extern const TileKernels kTable;
}
namespace avx512_bf16 {
extern const TileKernels kTable;
}

std::string_view name_of(Unit unit) { return kernels_of(unit).name; }

const TileKernels& kernels_of(Unit unit) { return unit == Unit::amx ? amx::kTable : avx512_bf16::kTable; }

}  // namespace paceline::engine::cpu::tiles
