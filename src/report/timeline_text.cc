#include "report/timeline_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "report/terminal_text.h"
#include "report/text.h"

namespace paceline::report {
namespace {

/// Capitals compute; what is not computing is small.
char letter_of(const std::string& phase) {
  static const std::map<std::string, char> kLetters{
      {"data wait", 'd'},        {"copy", 'c'},         {"forward", 'F'},      {"backward", 'B'},
      {"exposed transfer", 't'}, {"exposed wait", 'w'}, {"update", 'U'},       {"evaluation", 'E'},
      {"checkpoint", 'k'},       {"other", '.'},        {"communication", '#'}};
  const auto found = kLetters.find(phase);
  if (found != kLetters.end()) return found->second;
  return phase.empty() ? '?' : phase.front();
}

/// The letters of one lane, `columns` of them, over [begin, begin + length).
std::string drawn_lane(const Timeline& timeline, int lane, double begin, double length, std::size_t columns) {
  std::vector<std::vector<double>> share(columns, std::vector<double>(timeline.phases.size(), 0.0));
  const double slice = length / static_cast<double>(columns);
  for (const auto& span : timeline.spans) {
    if (span.lane != lane) continue;
    const auto first = static_cast<std::size_t>(std::max(0.0, (span.begin - begin) / slice));
    for (std::size_t column = first; column < columns; ++column) {
      const double from = begin + slice * static_cast<double>(column);
      if (from >= span.end) break;
      share[column][static_cast<std::size_t>(span.phase)] +=
          std::max(0.0, std::min(span.end, from + slice) - std::max(span.begin, from));
    }
  }
  std::string line;
  for (const auto& phases : share) {
    const auto most = std::max_element(phases.begin(), phases.end());
    constexpr double kVisible = 0.1;
    double all = 0;
    for (const double seconds : phases) all += seconds;
    const auto phase = static_cast<std::size_t>(most - phases.begin());
    line += all < kVisible * slice ? ' ' : letter_of(timeline.phases[phase]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string drawn_in_letters(const Timeline& timeline, int width) {
  if (timeline.spans.empty() || timeline.phases.empty()) return "";
  double begin = timeline.spans.front().begin, end = timeline.spans.front().end;
  for (const auto& span : timeline.spans) {
    begin = std::min(begin, span.begin);
    end = std::max(end, span.end);
  }
  std::size_t names = 0;
  for (const auto& lane : timeline.lanes) names = std::max(names, display_width(lane));
  const auto room = static_cast<std::size_t>(std::max(width, 40));
  const std::size_t columns = room > names + 12 ? room - names - 2 : 10;
  const std::string all = duration(end - begin);
  std::string out = std::string(names + 2, ' ') + "0" +
                    std::string(columns > all.size() + 1 ? columns - all.size() - 1 : 1, ' ') + all + "\n";
  std::string letters;
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    const auto line = drawn_lane(timeline, static_cast<int>(lane), begin, end - begin, columns);
    letters += line;
    std::string text = padded(timeline.lanes[lane], names + 2, true) + line;
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  std::vector<std::string> legend;
  for (const auto& phase : timeline.phases)
    if (letters.find(letter_of(phase)) != std::string::npos)
      legend.push_back(fmt::format("{}={}", letter_of(phase), phase));
  return out + broken(fmt::format("{}", fmt::join(legend, ", ")), "", 0, static_cast<int>(room));
}

}  // namespace paceline::report
