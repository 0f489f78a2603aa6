#include "cli/quiet_moment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace paceline::cli {

std::string text_about_load(const measure::LoadNow& load, int cores) {
  std::vector<std::string> names;
  for (const auto& program : load.programs)
    names.push_back(fmt::format("{} {:.1f}", program.name, program.cores));
  return fmt::format("other programs use {:.1f}{} cores now{}", load.cores,
                     load.cores <= cores ? fmt::format(" of {}", cores) : "",
                     names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", ")));
}

std::string text_about_timings(const std::optional<measure::LoadNow>& load, int cores) {
  constexpr double kShown = 0.05;  // less is written as 0.0
  if (!load) return "the system does not say what other programs do";
  if (load->cores < kShown) return "no other program works now";
  return text_about_load(*load, cores) + (measure::is_much(load->cores, cores)
                                              ? ": timings will show it"
                                              : ": too little for timings to show");
}

void say_load(int cores, Screen& screen) {
  constexpr double kLook_s = 1;
  const auto load = measure::load_now(kLook_s);
  if (load && measure::is_much(load->cores, cores))
    screen.say(text_about_load(*load, cores) +
               ": what they disturb is marked, and what decides is measured again; better: stop them first");
}

QuietMoment::QuietMoment(int cores, std::size_t measurements, Screen& screen, std::stop_token stop, Look look)
    : cores_(cores),
      most_wait_s_(2 * static_cast<double>(measurements)),
      most_waits_s_(kMostWaitsOfRepeat_s * static_cast<double>(measurements)),
      screen_(screen),
      stop_(std::move(stop)),
      look_(std::move(look)) {}

void QuietMoment::wait() {
  constexpr double kLook_s = 0.25;
  for (double waited = 0; !was_in_vain_ && !stop_.stop_requested(); waited += kLook_s) {
    const auto load = look_(kLook_s);
    if (!load || !measure::is_much(load->cores, cores_)) return;
    if (waited == 0) screen_.say("    waiting: {}", text_about_load(*load, cores_));
    waited_s_ += kLook_s;
    was_in_vain_ = waited >= most_wait_s_ || waited_s_ >= most_waits_s_;
  }
}

}  // namespace paceline::cli
