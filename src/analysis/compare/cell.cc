#include "analysis/compare/cell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "measure/setting.h"

namespace paceline::analysis {

using measure::Record;

std::string emulated(const Record& record) {
  static constexpr std::string_view kMark = " EMULATED ";
  std::vector<std::string> parts;
  if (record.device == "cuda-on-host") parts.emplace_back("GPU (no GPU: the CUDA engine on the processor)");
  const auto of_device = parts.size();
  for (const std::string* text : {&record.communication.communicator, &record.data.description})
    for (auto at = text->find(kMark); at != std::string::npos;) {
      const auto begin = at + kMark.size();
      at = text->find(kMark, begin);
      auto part = text->substr(begin, at == std::string::npos ? at : at - begin);
      if (part.ends_with(" +")) part.resize(part.size() - 2);
      parts.push_back(std::move(part));
    }
  if (parts.size() == of_device && record.ranks.empty() &&
      record.workers > 1)  // not run: the device that was asked for
    for (const auto& [option, name] : {std::pair{measure::Setting("emulate-link"), "link"},
                                       std::pair{measure::Setting("emulate-straggler"), "straggler"}})
      if (const auto* asked = measure::find_text(record.settings, option))
        parts.push_back(fmt::format("{} {}", name, *asked));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string Cell::part() const {
  const std::string& what = variant.empty() ? scaling : variant;
  return what.empty() || what == kBothScalings ? kind : fmt::format("{} {}", kind, what);
}

std::string Cell::name() const { return fmt::format("{}{} {}", part(), variant.empty() ? "" : ",", label); }

double Cell::full_steps() const {
  if (train_samples <= 0 || global_batch <= 0) return static_cast<double>(steps_per_epoch);
  return static_cast<double>(train_samples) / static_cast<double>(global_batch);
}

}  // namespace paceline::analysis
