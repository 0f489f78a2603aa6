#include "cluster/stop_request.h"

#include <signal.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "base/clock.h"
#include "cluster/same_press.h"

namespace paceline::cluster {
namespace {

// A signal handler gets no argument, so its data must be global; lock-free atomics only.
std::atomic<int> first_signal{0};
std::atomic<std::int64_t> first_at_ms{0};
std::atomic<bool> has_repeated{false};
std::atomic<bool> is_suspended{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

constexpr std::array kSignals{SIGTERM, SIGINT, SIGHUP, SIGTSTP};
/// The former actions of the signals.
std::array<struct sigaction, kSignals.size()> earlier_actions;

extern "C" void note_signal(int signal) {
  if (signal == SIGTSTP) {
    is_suspended = true;
    return;
  }
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal))
    first_at_ms = now_ms();
  else if (now_ms() - first_at_ms >= kSamePressMs)
    has_repeated = true;
}

}  // namespace

StopRequest::StopRequest() {
  first_signal = 0;
  has_repeated = is_suspended = false;
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = note_signal;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &earlier_actions[i]);
    const bool is_ignored =
        earlier_actions[i].sa_handler == SIG_IGN && (kSignals[i] == SIGHUP || kSignals[i] == SIGTSTP);
    if (!is_ignored) ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopRequest::~StopRequest() { restore_in_child(); }

void StopRequest::restore_in_child() const {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &earlier_actions[i], nullptr);
}

int StopRequest::signal() const { return first_signal; }

bool StopRequest::is_urgent() const { return has_repeated; }

bool StopRequest::take_suspension() const { return is_suspended.exchange(false); }

bool StopRequest::wait(std::chrono::milliseconds time) const {
  constexpr auto kLook = std::chrono::milliseconds(20);
  for (const auto end = base::Clock::now() + time; first_signal == 0 && base::Clock::now() < end;)
    std::this_thread::sleep_for(kLook);
  return first_signal != 0;
}

}  // namespace paceline::cluster
