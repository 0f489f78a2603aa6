#include "engine/cpu/kernels/kernels.h"

namespace paceline::engine::cpu {

namespace baseline {
extern const Kernels kTable;
}
namespace avx2 {
extern const Kernels kTable;
}
namespace avx512 {
extern const Kernels kTable;
}
namespace avx512_bf16 {
extern const Kernels kTable;
}

const Kernels& kernels_for(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return baseline::kTable;
    case Isa::avx2:
      return avx2::kTable;
    case Isa::avx512:
      return avx512::kTable;
    case Isa::avx512_bf16:
      return avx512_bf16::kTable;
  }
  return baseline::kTable;
}

}  // namespace paceline::engine::cpu
