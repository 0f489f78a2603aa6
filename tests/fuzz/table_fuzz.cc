/// Any bytes as a table, and as a file of each program whose files are imported: the first byte chooses.

#include "base/error.h"
#include "check/check.h"
#include "input.h"
#include "table/import/import.h"
#include "table/table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  if (bytes == 0) return 0;
  static const fuzz::Directory directory;
  const auto importers = table::importers();
  // Bytes from 128 on choose the last importer, so that those before mean what they always did.
  const std::size_t which = data[0] < 128 ? data[0] % importers.size() : importers.size() - 1;
  try {
    table::Table table;
    if (data[0] < 128 && which == importers.size() - 1) {
      table = table::read_table({reinterpret_cast<const char*>(data + 1), bytes - 1}, "t");
    } else {
      const std::filesystem::path file = directory.write("a", data + 1, bytes - 1);
      table = importers[which].read({&file, 1}, {});
    }
    (void)check::check_table(table);
    (void)table::to_csv(table);
  } catch (const base::Error&) {
  }
  return 0;
}
