/// Any bytes as the text that names a data set. What it names is opened where it needs no file.

#include <string>

#include "base/error.h"
#include "data/dataset.h"
#include "data/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  const std::string text(reinterpret_cast<const char*>(data), bytes);
  try {
    const auto spec = data::parse_spec(text);
    (void)data::integer_option(spec, "train", 1, 1, 100);
    (void)data::decimal_option(spec, "jitter", 0, 0, 1);
    (void)data::decimals_option(spec, "mean", 3, 0, 1);
    if (spec.name == "synthetic") (void)data::open(text, {});
  } catch (const base::Error&) {
  }
  return 0;
}
