#include "comm/failure/stall_detector.h"

namespace paceline::comm::local {
namespace {

/// If a check is this many intervals late, the whole process was stopped, and the ranks' inactivity means
/// nothing.
constexpr int kLooksLate = 8;

}  // namespace

HeldUp StallDetector::look(const std::vector<RankStatus>& places, const std::vector<bool>& came,
                           bool has_worked, base::TimePoint now) {
  if (seen_.empty() || now - last_ > kLooksLate * look_) {
    if (!seen_.empty()) began_ = now;
    seen_.assign(places.size(), WatchedProcess{.moved = now, .worked = now});
    for (std::size_t rank = 0; rank < places.size(); ++rank) seen_[rank].at = places[rank];
  }
  last_ = now;
  std::vector<const WatchedProcess*> all;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    RankStatus where = places[rank];
    where.doing = came[rank] ? Doing::waits : has_worked ? Doing::works : Doing::rests;
    if (came[rank]) where.waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - began_);
    seen_[rank].take(std::move(where), now);
    all.push_back(&seen_[rank]);
  }
  return who_holds_up(all, held_up_, now);
}

}  // namespace paceline::comm::local
