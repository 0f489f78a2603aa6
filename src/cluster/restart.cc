#include "cluster/restart.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/kept_record.h"
#include "train/checkpoint/last_words.h"

namespace paceline::cluster {

bool is_worth_a_restart(int exit_code) {
  if (exit_code == static_cast<int>(base::ErrorKind::comm)) return true;
  const int signal = exit_code - 128;
  return signal > 0 && signal != SIGINT && signal != SIGTERM && signal != SIGHUP;
}

int exit_code_of_launch(int exit_code) {
  return is_worth_a_restart(exit_code) ? static_cast<int>(base::ErrorKind::comm) : exit_code;
}

std::vector<std::string> restart_words(const std::filesystem::path& out) {
  if (!train::checkpoints_in(out).empty()) return {"--resume", "auto"};
  std::error_code ignored;  // the run will report what cannot be moved
  std::filesystem::rename(out / "record.json", out / train::kLostRecord, ignored);
  return {};
}

bool is_complete(const std::filesystem::path& out, const std::string& started) {
  const auto path = out / "record.json";
  if (out.empty() || !std::filesystem::exists(path)) return false;
  const auto record = train::read_kept_record(path).record;
  return record && record->status == "complete" && record->created >= started;
}

std::string lost_text(double ended_at_s, const Ended& ended, const std::string& launcher) {
  return fmt::format("at={:.3f},code={},after={:.3f},by={}", ended_at_s - ended.known_ago_s, ended.code,
                     ended.detection_s.value_or(-1), launcher);
}

std::optional<train::LostBefore> read_lost(const char* text) {
  double at_s = 0, after_s = 0;
  int code = 0;
  if (text == nullptr || std::sscanf(text, "at=%lf,code=%d,after=%lf", &at_s, &code, &after_s) != 3)
    return std::nullopt;
  const std::string_view all = text;
  const auto by = all.find(",by=");
  const std::string launcher(by == all.npos ? "mpirun" : all.substr(by + 4));
  return train::LostBefore{
      .how = sentence_of_end(code, launcher) + ", and no process was left to report why",
      .loss = {.known_at_s = at_s, .detection_s = after_s < 0 ? std::nullopt : std::optional(after_s)}};
}

std::string sentence_of_end(int code, const std::string& launcher) {
  // Open MPI's own errors are negative: 243 (-13) is not a signal.
  if (code <= 128 || code - 128 > SIGRTMAX) return fmt::format("{} ended with {}", launcher, code);
  return fmt::format("{} ended with {} (signal {}, {})", launcher, code, code - 128, ::strsignal(code - 128));
}

std::int64_t progress_of(const std::filesystem::path& out) {
  if (const auto newest = train::checkpoints_in(out); !newest.empty()) {
    std::int64_t update = 0;  // the number in checkpoint-00000812
    (void)std::sscanf(newest.front().filename().c_str(), "checkpoint-%" SCNd64, &update);
    return update;
  }
  std::error_code none;
  return std::distance(std::filesystem::directory_iterator(out / "records", none), {});
}

std::chrono::seconds wait_before_restart(int tries) {
  constexpr int kDoublings = 6;
  constexpr std::chrono::seconds kMost{60};
  return std::min(kMost, std::chrono::seconds(1 << std::min(kDoublings, tries - 1)));
}

int run_with_restarts(const std::vector<std::string>& line, const StopRequest& stop,
                      const RestartRule& rule) {
  const auto stopped = [&](int code) { return code == 0 ? 0 : 128 + stop.signal(); };
  auto furthest = rule.progress ? rule.progress() : 0;
  auto ended = run_line(line, stop, rule.grace);
  for (int tries = 1; stop.signal() == 0 && is_worth_a_restart(ended.code); ++tries) {
    if (ended.code > 128)
      std::fprintf(stderr, "paceline: %s\n", sentence_of_end(ended.code, rule.launcher).c_str());
    if (const auto reached = rule.progress ? rule.progress() : 0; reached > furthest) {
      furthest = reached;
      tries = 1;
    }
    if (tries > rule.restarts) break;
    const auto wait = wait_before_restart(tries);
    if (rule.wait) {
      rule.wait(wait);
    } else {
      std::fprintf(stderr, "paceline: the next try begins in %d s\n", static_cast<int>(wait.count()));
      stop.wait(wait);
    }
    if (stop.signal() != 0) break;
    const auto next = rule.again(tries, ended);
    if (next.empty()) return 0;
    ended = run_line(next, stop, rule.grace);
  }
  return stop.signal() == 0 ? ended.code : stopped(ended.code);
}

}  // namespace paceline::cluster
