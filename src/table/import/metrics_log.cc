/// The words by which entries of a log are told apart, and the ranks that launchers name.

#include "table/import/metrics_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace paceline::table {

std::size_t MetricLog::number_of(const std::string& name) {
  const auto [found, is_new] = numbers_.try_emplace(name, names.size());
  if (is_new) names.push_back(name);
  return found->second;
}

std::string MetricLog::place(const std::string& where, const MetricCell& cell) const {
  if (counts_entries) return fmt::format("{}: entry {}", where, cell.line);
  return cell.column > 0 ? fmt::format("{}:{}:{}", where, cell.line, cell.column)
                         : fmt::format("{}:{}", where, cell.line);
}

std::optional<MetricKey> metric_key_of(std::string_view name) {
  constexpr std::size_t kLongest = 24;
  if (name.size() > kLongest) return std::nullopt;
  auto words = base::lower_case(std::string(name));
  std::ranges::replace(words, ' ', '_');
  if (words.starts_with("train/")) words.erase(0, 6);
  if (is_any(words, {"epoch", "epoch_num", "epoch_idx", "current_epoch"})) return MetricKey::epoch;
  if (is_any(words,
             {"step", "_step", "global_step", "trainer/global_step", "iter", "iteration", "num_updates"}))
    return MetricKey::step;
  return std::nullopt;
}

bool is_missing(std::string_view text) {
  return is_any(base::lower_case(text), {"", "null", "none", "na", "n/a", "-", "--"});
}

std::optional<int> rank_in(std::string_view prefix) {
  const auto digits_before = [&](std::size_t at, std::string_view end) -> std::optional<int> {
    auto rest = prefix.substr(at);
    const auto rank = base::take_number<int>(rest);
    return rank && *rank >= 0 && rest.starts_with(end) ? rank : std::nullopt;
  };
  for (const std::string_view word : {"[rank", "[default", "[worker"})
    if (const auto at = prefix.find(word); at != std::string_view::npos)
      if (const auto rank = digits_before(at + word.size(), "]")) return rank;
  if (const auto tag = prefix.find("]<std"); tag != std::string_view::npos)
    if (const auto comma = prefix.rfind(',', tag); comma != std::string_view::npos)
      return digits_before(comma + 1, "]");
  // mpiexec -l and srun -l; the hour of a clock is followed by a digit, or ends no bracket.
  const auto begin = std::min(prefix.find_first_not_of(' '), prefix.size());
  return prefix.substr(begin).starts_with('[') ? digits_before(begin + 1, "] ") : digits_before(begin, ": ");
}

FirstRank::FirstRank(std::string_view text) {
  constexpr int kFewest = 3;
  int lines = 0, last = 0;
  while (!text.empty()) {
    const auto line = take_line(text);
    const auto begin = line.find_first_not_of(" [");
    if (begin == std::string_view::npos) continue;
    const auto number = line[begin] >= '0' && line[begin] <= '9' ? rank_in(line) : std::nullopt;
    if (!number || (lines > 0 && *number != last + 1)) return;
    last = *number;
    ++lines;
  }
  are_lines_counted_ = lines >= kFewest;
}

bool FirstRank::takes(std::string_view prefix) {
  const auto rank = are_lines_counted_ ? std::nullopt : rank_in(prefix);
  if (!rank) return true;
  if (!rank_) rank_ = rank;
  left_out_ += rank_ == rank ? 0 : 1;
  return rank_ == rank;
}

std::string FirstRank::note() const {
  return left_out_ == 0 ? ""
                        : fmt::format("{} of other ranks left out: the figures are those of rank {}",
                                      base::counted(left_out_, "line"), *rank_);
}

void spread_values(MetricLog& log) {
  std::optional<std::size_t> tag, value, step;
  for (std::size_t at = 0; at < log.names.size(); ++at) {
    const auto name = base::lower_case(log.names[at]);
    if (name == "tag" || name == "metric" || name == "key") tag = at;
    if (name == "value") value = at;
    if (metric_key_of(name) && !step) step = at;
  }
  if (!tag || !value || !step) return;
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < log.entries.size(); ++i) {
    double key = 0;
    std::string called;
    for (const auto& cell : log.entries[i]) {
      if (cell.name == *tag) called = cell.text;
      if (cell.name == *step)
        if (const auto number = read_number(cell.text)) key = number->value;
    }
    order.emplace_back(key, i);
    for (auto& cell : log.entries[i])
      if (cell.name == *value && !called.empty()) cell.name = log.number_of(called);
    std::erase_if(log.entries[i], [&](const MetricCell& cell) { return cell.name == *tag; });
  }
  std::ranges::stable_sort(order, {}, [](const auto& one) { return one.first; });
  std::vector<std::vector<MetricCell>> entries;
  for (const auto& [key, i] : order) entries.push_back(std::move(log.entries[i]));
  log.entries = std::move(entries);
}

}  // namespace paceline::table
