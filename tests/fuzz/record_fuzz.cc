/// Any bytes as a record, with and without its checksum, and as a line of events. What is read can be shown
/// and written again.

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "input.h"
#include "measure/events.h"
#include "measure/record.h"
#include "measure/record_file.h"
#include "measure/record_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  const std::string text(reinterpret_cast<const char*>(data), bytes);
  if (const auto event = measure::event_from_json(text)) (void)measure::to_json(*event);
  try {
    auto record = measure::record_from_json(text, "fuzz");
    measure::make_visible(record);
    const auto again = measure::with_checksum(measure::to_json(record));
    const auto second = measure::record_from_json(again, "again");
    if (measure::to_json(second) != measure::to_json(record)) std::abort();
  } catch (const base::Error&) {
  }
  return 0;
}
