#include "comm/failure/heartbeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/line_socket.h"

namespace paceline::comm {

std::string line_of(const Failure& failure) {
  const auto detection = failure.detection_s ? fmt::format("{:.0f}", 1e3 * *failure.detection_s) : "-";
  return fmt::format("{} {} {}", static_cast<int>(failure.kind), detection, failure.text);
}

Failure failure_of(std::string_view line) {
  const auto kind = number_of(word_of(line)).value_or(static_cast<std::uint64_t>(base::ErrorKind::comm));
  const auto detection_ms = number_of(word_of(line));
  Failure failure{.kind = static_cast<base::ErrorKind>(kind), .text = std::string(line)};
  if (detection_ms) failure.detection_s = 1e-3 * static_cast<double>(*detection_ms);
  return failure;
}

namespace {

using std::chrono::milliseconds;

constexpr int kBeatsWithoutALook = 6;

}  // namespace

void Heartbeat::at(std::int64_t step, const char* phase) {
  step_.store(step, std::memory_order_relaxed);
  phase_.store(phase, std::memory_order_relaxed);
  signs_.fetch_add(1, std::memory_order_relaxed);
}

void Heartbeat::held_up_by(const std::optional<RankStatus>& rank) {
  const std::lock_guard lock(mutex_);
  late_ = rank;
}

void Heartbeat::looks(Channel channel, bool follows) {
  Stream& mine = of(channel);
  add_one(mine.looks);
  if (mine.since.load(std::memory_order_relaxed) != base::TimePoint{}) return;
  mine.follows.store(follows, std::memory_order_relaxed);
  mine.since.store(base::Clock::now(), std::memory_order_relaxed);
}

void Heartbeat::leaves(Channel channel) {
  of(channel).since.store({}, std::memory_order_relaxed);
  signs_.fetch_add(1, std::memory_order_relaxed);
}

RankStatus Heartbeat::now() {
  const bool has_worked = work_.has_worked();
  const auto signs = signs_.load(std::memory_order_relaxed);
  const bool has_told = std::exchange(seen_signs_, signs) != signs;
  RankStatus where{.step = step_.load(std::memory_order_relaxed),
                   .doing = has_worked || has_told ? Doing::works : Doing::rests};
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
  if (hangs) {
    where.doing = Doing::rests;
    where.waited = milliseconds(0);
  }
  if (where.doing == Doing::waits || where.doing == Doing::follows) return where;
  const std::lock_guard lock(mutex_);
  if (!late_) return where;
  where.step = late_->step;
  where.phase = late_->phase;
  where.rank = late_->rank;
  return where;
}

}  // namespace paceline::comm
