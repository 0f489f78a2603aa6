#include "measure/record.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "measure/record_file.h"

namespace paceline::measure {

std::string name_of_data(const Record& record) {
  const auto& data = record.data;
  if (data.name != "folder") return data.name.empty() ? data.spec : data.name;
  auto place = data.spec.substr(data.spec.find(':') + 1);
  place.resize(std::min(place.find(','), place.size()));
  while (place.ends_with('/')) place.pop_back();
  const auto last = std::filesystem::path(place).filename();
  const auto name = last.extension() == ".tar" ? last.stem().string() : last.string();
  return name.empty() || name == "." || name == ".." ? data.name : name;
}

std::filesystem::path picture_file(const std::filesystem::path& record, std::int64_t index) {
  return record.parent_path() / (record.stem().string() + "-mistakes") / fmt::format("{}.jpg", index);
}

void read_pictures(const std::filesystem::path& path, Record& record) {
  if (!record.evaluation) return;
  for (auto& mistake : record.evaluation->mistakes) {
    const auto file = picture_file(path, mistake.index);
    if (base::is_file(file)) mistake.picture = base::read_file(file);
  }
}

void write_record(const std::filesystem::path& path, const Record& record) {
  if (record.evaluation)
    for (const auto& mistake : record.evaluation->mistakes)
      if (!mistake.picture.empty()) base::write_file(picture_file(path, mistake.index), mistake.picture);
  base::write_file(path, with_checksum(to_json(record)));
}

Record read_record(const std::filesystem::path& path) {
  return record_from_json(record_text(path), path.string());
}

std::optional<double> final_test_accuracy(const Record& record) {
  if (record.test_set && record.test_set->policy == "last") return record.test_set->accuracy;
  return record.epochs.empty() ? std::nullopt : record.epochs.back().test_accuracy;
}

std::string sentence(const ChangeRecord& change) {
  if (is_of_images(change.setting))
    return fmt::format("from update {} on, the list of {} is another: {}; before, {}", change.update,
                       change.setting, change.now.value_or("none"), change.then.value_or("none"));
  return fmt::format("from update {} on, --{} is {}; it was {}", change.update, change.setting,
                     change.now.value_or("not given"), change.then.value_or("not given"));
}

}  // namespace paceline::measure
