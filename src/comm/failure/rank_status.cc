#include "comm/failure/rank_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "comm/line_socket.h"

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;

constexpr std::array<std::string_view, 4> kDoing{"works", "rests", "waits", "follows"};

bool is_there_for_others(const WatchedProcess& one) { return !one.is_out && one.at.doing != Doing::follows; }

/// How long the process has shown no progress; what counts as progress depends on its phase.
milliseconds rested(const WatchedProcess& one, bool may_work, base::TimePoint now) {
  const auto last = may_work ? std::max(one.moved, one.worked) : one.moved;
  return std::chrono::duration_cast<milliseconds>(now - last);
}

/// If all processes wait: those that have been behind the others for `longest`. None if one is silent, since
/// all may wait for it, or if all have entered equally many collectives.
std::vector<std::size_t> who_is_behind(std::span<const WatchedProcess* const> all, milliseconds longest) {
  std::vector<std::size_t> behind;
  std::int64_t least = 0, most = 0;
  for (std::size_t process = 0; process < all.size(); ++process) {
    const WatchedProcess& one = *all[process];
    if (one.is_out || one.at.doing == Doing::works || one.at.doing == Doing::rests) return {};
    if (one.at.doing == Doing::follows) continue;
    if (behind.empty()) least = most = one.at.collectives;
    if (one.at.collectives < least) behind.clear();
    least = std::min(least, one.at.collectives);
    most = std::max(most, one.at.collectives);
    if (one.at.collectives == least) behind.push_back(process);
  }
  std::erase_if(behind, [&](std::size_t process) { return all[process]->at.waited < longest; });
  return least < most ? behind : std::vector<std::size_t>();
}

/// All processes that do not follow the first one, if none of them waits and none has done anything for
/// `longest`.
HeldUp who_stands_still(std::span<const WatchedProcess* const> all, milliseconds longest,
                        base::TimePoint now) {
  HeldUp still;
  for (std::size_t process = 0; process < all.size(); ++process) {
    const WatchedProcess& one = *all[process];
    if (!is_there_for_others(one)) continue;
    const auto idle = rested(one, true, now);
    if (one.at.doing != Doing::rests || idle < longest) return {};
    still.rested = still.by.empty() ? idle : std::min(still.rested, idle);
    still.by.push_back(process);
  }
  return still;
}

}  // namespace

std::string line_of(const RankStatus& where) {
  return fmt::format("{} {} {} {} {} {}", where.step, where.collectives,
                     kDoing[static_cast<std::size_t>(where.doing)], where.waited.count(),
                     where.rank < 0 ? "-" : fmt::format("{}", where.rank), where.phase);
}

std::optional<RankStatus> rank_status_of(std::string_view line) {
  const auto step = number_of(word_of(line)), collectives = number_of(word_of(line));
  const auto* const doing = std::find(kDoing.begin(), kDoing.end(), word_of(line));
  const auto waited = number_of(word_of(line)), rank = number_of(word_of(line));
  if (!step || !collectives || doing == kDoing.end() || !waited) return std::nullopt;
  return RankStatus{.step = static_cast<std::int64_t>(*step),
                    .phase = std::string(line),
                    .doing = static_cast<Doing>(doing - kDoing.begin()),
                    .waited = milliseconds(*waited),
                    .collectives = static_cast<std::int64_t>(*collectives),
                    .rank = rank ? static_cast<int>(*rank) : -1};
}

std::string place_of(const RankStatus& where) {
  return where.step == 0 ? where.phase : fmt::format("{} of step {}", where.phase, where.step);
}

std::string text_of_waiting(milliseconds waited, std::string_view who, milliseconds given_up_after) {
  return fmt::format("the others have waited {:.0f} s for {}; it is given up after {:.0f} s",
                     base::seconds(waited), who, base::seconds(given_up_after));
}

std::string text_of_standstill(milliseconds rested, std::span<const std::string> who) {
  return fmt::format("no rank has done anything for {:.0f} s, neither computed nor read nor written: {}",
                     base::seconds(rested), fmt::join(who, ", "));
}

std::string text_of_giving_up(milliseconds given_up_after) {
  return fmt::format("; the run is given up after {:.0f} s", base::seconds(given_up_after));
}

void WatchedProcess::take(RankStatus now, base::TimePoint when) {
  if (now.step != at.step || now.phase != at.phase || now.collectives != at.collectives) moved = when;
  if (now.doing == Doing::works) worked = when;
  at = std::move(now);
}

HeldUp who_holds_up(std::span<const WatchedProcess* const> all, milliseconds longest, base::TimePoint now) {
  HeldUp held, following;
  for (const WatchedProcess* one : all) {
    if (one->is_out) continue;
    auto& waited = one->at.doing == Doing::follows ? following.waited : held.waited;
    if (one->at.doing == Doing::waits || one->at.doing == Doing::follows)
      waited = std::max(waited, one->at.waited);
  }
  if (held.waited >= longest) {
    for (std::size_t process = 0; process < all.size(); ++process) {
      const WatchedProcess& one = *all[process];
      if (is_there_for_others(one) && one.at.doing != Doing::waits &&
          rested(one, one.at.step == 0, now) >= longest)
        held.by.push_back(process);
    }
    if (held.by.empty()) held.by = who_is_behind(all, longest);
    if (!held.by.empty()) return held;
  }
  auto still = who_stands_still(all, longest, now);
  // Only the first process, while others follow it: it may be busy with files, outside of a run.
  const bool is_followed = still.by == std::vector<std::size_t>{0} && following.waited.count() > 0;
  if (is_followed && following.waited < longest) return {};
  if (is_followed) still.waited = following.waited;
  return still;
}

}  // namespace paceline::comm
