/// Any bytes as a kernel cache: what is accepted is written as it was read.

#include <cstdlib>
#include <string>

#include "engine/kernel_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline::engine;
  const auto table = kernel_table_from({reinterpret_cast<const char*>(data), bytes});
  if (!table) return 0;
  const auto again = kernel_table_from(as_text(*table));
  if (!again || again->machine != table->machine || again->algorithms != table->algorithms) std::abort();
  return 0;
}
