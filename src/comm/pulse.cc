#include "comm/pulse.h"

#include <algorithm>

namespace paceline::comm {
namespace {

using std::chrono::milliseconds;

constexpr int kBeatsWithoutALook = 3;

/// Of a core: below this a process does nothing but stay alive.
constexpr double kStaysAlive = 0.005;

double processor_s(const rusage& used) {
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

}  // namespace

void Pulse::at(std::int64_t step, const char* phase) {
  step_.store(step, std::memory_order_relaxed);
  phase_.store(phase, std::memory_order_relaxed);
}

void Pulse::looks(Channel channel, bool follows) {
  Stream& mine = of(channel);
  add_one(mine.looks);
  if (mine.since.load(std::memory_order_relaxed) != base::TimePoint{}) return;
  mine.follows.store(follows, std::memory_order_relaxed);
  mine.since.store(base::Clock::now(), std::memory_order_relaxed);
}

void Pulse::leaves(Channel channel) { of(channel).since.store({}, std::memory_order_relaxed); }

/// All threads but this one, which sends the heartbeats.
bool Pulse::has_worked() {
  rusage whole{}, own{};
  ::getrusage(RUSAGE_SELF, &whole);
  ::getrusage(RUSAGE_THREAD, &own);
  const auto now = base::Clock::now();
  const double seconds = processor_s(whole) - processor_s(own);
  const std::int64_t blocks = whole.ru_inblock + whole.ru_oublock + whole.ru_majflt;
  const bool worked = blocks != blocks_ || seconds - processor_s_ >= kStaysAlive * base::seconds(now - beat_);
  beat_ = now;
  processor_s_ = seconds;
  blocks_ = blocks;
  return worked;
}

Whereabouts Pulse::now() {
  Whereabouts where{.step = step_.load(std::memory_order_relaxed),
                    .doing = has_worked() ? Doing::works : Doing::rests};
  if (const char* phase = phase_.load(std::memory_order_relaxed); phase != nullptr) where.phase = phase;
  bool hangs = false;
  for (Stream& stream : streams_) {
    where.collectives += stream.collectives.load(std::memory_order_relaxed);
    const auto looks = stream.looks.load(std::memory_order_relaxed);
    const auto since = stream.since.load(std::memory_order_relaxed);
    const bool waits = since != base::TimePoint{};
    stream.unseen = waits && looks == stream.seen ? stream.unseen + 1 : 0;
    stream.seen = looks;
    hangs = hangs || stream.unseen >= kBeatsWithoutALook;
    if (!waits) continue;
    const bool follows = stream.follows.load(std::memory_order_relaxed);
    if (where.doing != Doing::waits) where.doing = follows ? Doing::follows : Doing::waits;
    where.waited =
        std::max(where.waited, std::chrono::duration_cast<milliseconds>(base::Clock::now() - since));
  }
  if (!hangs) return where;
  where.doing = Doing::rests;
  where.waited = milliseconds(0);
  return where;
}

}  // namespace paceline::comm
