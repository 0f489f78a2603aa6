#include "comm/work_meter.h"

#include <sys/resource.h>

namespace paceline::comm {
namespace {

/// Of a core: below this a process does nothing but stay alive.
constexpr double kStaysAlive = 0.005;

double processor_s(const rusage& used) {
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

}  // namespace

bool WorkMeter::has_worked() {
  rusage whole{}, own{};
  ::getrusage(RUSAGE_SELF, &whole);
  ::getrusage(RUSAGE_THREAD, &own);
  const auto now = base::Clock::now();
  const double seconds = processor_s(whole) - processor_s(own);
  const std::int64_t blocks = whole.ru_inblock + whole.ru_oublock + whole.ru_majflt;
  const bool worked =
      blocks != blocks_ || seconds - processor_s_ >= kStaysAlive * base::seconds(now - asked_);
  asked_ = now;
  processor_s_ = seconds;
  blocks_ = blocks;
  return worked;
}

}  // namespace paceline::comm
