#include "comm/failure/stall_detector.h"

#include <algorithm>

namespace paceline::comm {
namespace {

/// Fraction of a core below which a process only stays alive.
constexpr double kStaysAlive = 0.01;
constexpr double kIsWorkAtOnce = 0.03;  ///< seconds of a core: more than the system charges by mistake
constexpr double kIsWorkAfter = 0.8;    ///< seconds: two heartbeats, each possibly early

}  // namespace

bool Effort::is_work(double spent_s, double elapsed_s) {
  const bool is_busy = spent_s > kStaysAlive * elapsed_s;
  busy_s_ = std::max(0.0, busy_s_ + (is_busy ? elapsed_s : -elapsed_s / 2));
  const bool is_work = spent_s >= kIsWorkAtOnce || busy_s_ >= kIsWorkAfter;
  if (is_work) busy_s_ = 0;
  return is_work;
}

bool WorkMeter::has_worked() {
  rusage whole{}, own{};
  ::getrusage(RUSAGE_SELF, &whole);
  ::getrusage(RUSAGE_THREAD, &own);
  const auto now = base::Clock::now();
  const double seconds = base::processor_s(whole) - base::processor_s(own);
  const std::int64_t blocks = whole.ru_inblock + whole.ru_oublock + whole.ru_majflt;
  const bool has_computed = effort_.is_work(seconds - processor_s_, base::seconds(now - asked_));
  const bool worked = has_computed || blocks != blocks_;
  asked_ = now;
  processor_s_ = seconds;
  blocks_ = blocks;
  return worked;
}

}  // namespace paceline::comm

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
