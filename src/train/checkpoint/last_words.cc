#include "train/checkpoint/last_words.h"

#include <system_error>

namespace paceline::train {

void leave_last_words(const std::filesystem::path& out, const measure::Record& record) {
  if (!out.empty() && std::filesystem::is_directory(out)) measure::write_record(out / kLastWords, record);
}

void forget_last_words(const std::filesystem::path& out) {
  std::error_code not_there;
  if (!out.empty()) std::filesystem::remove(out / kLastWords, not_there);
}

}  // namespace paceline::train
