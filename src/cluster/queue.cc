#include "cluster/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace paceline::cluster {
namespace {

struct Answer {
  std::string state, reason, start;
};

/// Parses "PENDING|Priority|2026-11-25T08:00:00".
std::optional<Answer> read_answer(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  const auto first = text.find('|');
  const auto second = first == std::string_view::npos ? first : text.find('|', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  return Answer{.state = std::string(text.substr(0, first)),
                .reason = std::string(text.substr(first + 1, second - first - 1)),
                .start = std::string(text.substr(second + 1))};
}

bool is_known(const std::string& start) { return !start.empty() && start != "N/A" && start != "Unknown"; }

/// Explanations of the most frequent reasons; others explain themselves.
constexpr std::pair<std::string_view, std::string_view> kReasons[] = {
    {"Priority", "jobs before it come first"},
    {"Resources", "it is next, and waits until enough nodes are free"},
    {"Dependency", "it waits for another job"},
    {"BeginTime", "its start time (--begin) has not come"},
    {"JobHeldUser", "a user holds it: scontrol release"},
    {"JobHeldAdmin", "an administrator holds it"},
    {"PartitionTimeLimit", "it asks for more time than the partition gives: a shorter --time"},
    {"PartitionNodeLimit", "it asks for more nodes than the partition gives: fewer --nodes"},
    {"PartitionDown", "the partition takes no jobs now: another --partition"},
    {"ReqNodeNotAvail", "nodes that it needs are down or reserved"},
};

std::string meaning(std::string_view reason) {
  const auto found =
      std::ranges::find_if(kReasons, [&](const auto& one) { return reason.starts_with(one.first); });
  if (found != std::end(kReasons)) return fmt::format(" ({})", found->second);
  if (reason.starts_with("QOS") || reason.starts_with("Assoc")) return " (a limit of the account is reached)";
  return "";
}

}  // namespace

std::vector<std::string> queue_line(const std::string& job) {
  return {"squeue", "--noheader", "--jobs", job, "--format", "%T|%r|%S"};
}

bool is_considered(std::string_view text) {
  const auto answer = read_answer(text);
  return !answer || answer->state != "PENDING" || answer->reason != "None" || is_known(answer->start);
}

std::string queue_sentence(std::string_view text) {
  const auto answer = read_answer(text);
  if (!answer || answer->state.empty()) return "";
  if (answer->state != "PENDING")
    return fmt::format("queue: {}{}", answer->state,
                       is_known(answer->start) ? ", started " + answer->start : "");
  const bool has_reason = !answer->reason.empty() && answer->reason != "None";
  return fmt::format("queue: PENDING, {}{}; {}", has_reason ? answer->reason : "no reason yet",
                     has_reason ? meaning(answer->reason) : "",
                     is_known(answer->start) ? "expected start " + answer->start : "no expected start yet");
}

}  // namespace paceline::cluster
