#include "measure/record.h"

#include <fmt/format.h>

#include "base/file.h"
#include "measure/record_file.h"

namespace paceline::measure {

void write_record(const std::filesystem::path& path, const Record& record) {
  base::write_file(path, with_checksum(to_json(record)));
}

Record read_record(const std::filesystem::path& path) {
  return record_from_json(base::read_file(path), path.string());
}

std::optional<double> final_test_accuracy(const Record& record) {
  if (record.test_set && record.test_set->policy == "last") return record.test_set->accuracy;
  return record.epochs.empty() ? std::nullopt : record.epochs.back().test_accuracy;
}

std::string sentence(const ChangeRecord& change) {
  return fmt::format("from update {} on, --{} is {}; it was {}", change.update, change.setting,
                     change.now.value_or("not given"), change.then.value_or("not given"));
}

}  // namespace paceline::measure
