#include "engine/cpu/kernels/grouped/grouped.h"

namespace paceline::engine::cpu::grouped {

namespace avx2 {
extern const GroupedKernels kTable;
}
namespace avx512 {
extern const GroupedKernels kTable;
}

std::vector<const GroupedKernels*> kernels_here() {
  std::vector<const GroupedKernels*> tables;
#if defined(__x86_64__)
  for (const auto* table : {&avx2::kTable, &avx512::kTable})
    if (has(table->isa)) tables.push_back(table);
#endif
  return tables;
}

}  // namespace paceline::engine::cpu::grouped
