#include "measure/record.h"

#include "base/file.h"

namespace paceline::measure {

void write_record(const std::filesystem::path& path, const Record& record) {
  base::write_file(path, to_json(record));
}

Record read_record(const std::filesystem::path& path) {
  return record_from_json(base::read_file(path), path.string());
}

}  // namespace paceline::measure
