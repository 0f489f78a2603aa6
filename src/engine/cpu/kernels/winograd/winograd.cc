#include "engine/cpu/kernels/winograd/winograd.h"

namespace paceline::engine::cpu::winograd {

namespace avx2 {
extern const WinogradKernels kTable;
}
namespace avx512 {
extern const WinogradKernels kTable;
}

std::vector<const WinogradKernels*> kernels_here() {
  std::vector<const WinogradKernels*> tables;
#if defined(__x86_64__)
  for (const auto* table : {&avx2::kTable, &avx512::kTable})
    if (has(table->isa)) tables.push_back(table);
#endif
  return tables;
}

}  // namespace paceline::engine::cpu::winograd
