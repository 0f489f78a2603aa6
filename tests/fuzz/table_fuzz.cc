/// Any bytes as a table, and as a file of each program whose files are imported: the first byte chooses.

#include <array>

#include "base/error.h"
#include "check/check.h"
#include "input.h"
#include "table/import/import.h"
#include "table/table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  if (bytes == 0) return 0;
  static const fuzz::Directory directory;
  // What a byte chooses stays, so that inputs mean what they always did: a new format takes bytes from the
  // end.
  static const std::array kByByte{table::nccl_tests_json(),  table::ddp_benchmark(),   table::kineto(),
                                  table::horovod_timeline(), table::nccl_tests_text(), table::metrics_csv()};
  try {
    table::Table table;
    if (const std::size_t which = data[0] % (kByByte.size() + 1); data[0] < 128 && which == kByByte.size()) {
      table = table::read_table({reinterpret_cast<const char*>(data + 1), bytes - 1}, "t");
    } else {
      const std::filesystem::path file = directory.write("a", data + 1, bytes - 1);
      const auto importer = data[0] < 128   ? kByByte[which]
                            : data[0] < 192 ? table::metrics_json()
                                            : table::ddp_run();
      table = importer.read({&file, 1}, {});
    }
    (void)check::check_table(table);
    (void)table::to_csv(table);
  } catch (const base::Error&) {
  }
  return 0;
}
