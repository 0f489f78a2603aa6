#include "cli/restart.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "measure/record.h"
#include "train/checkpoint.h"
#include "train/last_words.h"

namespace paceline::cli {

bool is_worth_a_restart(int exit_code) {
  if (exit_code == static_cast<int>(base::ErrorKind::comm)) return true;
  const int signal = exit_code - 128;
  return signal > 0 && signal != SIGINT && signal != SIGTERM && signal != SIGHUP;
}

int exit_code_of_launch(int exit_code) {
  return is_worth_a_restart(exit_code) ? static_cast<int>(base::ErrorKind::comm) : exit_code;
}

std::vector<std::string> restart_words(const std::filesystem::path& out) {
  if (!train::checkpoints_in(out).empty()) return {"--resume", out.string()};
  std::error_code ignored;  // what cannot be moved the run will name
  std::filesystem::rename(out / "record.json", out / train::kLostRecord, ignored);
  return {};
}

bool is_complete(const std::filesystem::path& out, const std::string& started) {
  const auto path = out / "record.json";
  if (out.empty() || !std::filesystem::exists(path)) return false;
  const auto record = measure::read_record(path);
  return record.status == "complete" && record.created >= started;
}

std::string lost_text(double ended_at_s, const Ended& ended) {
  return fmt::format("at={:.3f},code={},after={:.3f}", ended_at_s - ended.known_ago_s, ended.code,
                     ended.detection_s.value_or(-1));
}

std::optional<train::LostBefore> read_lost(const char* text) {
  double at_s = 0, after_s = 0;
  int code = 0;
  if (text == nullptr || std::sscanf(text, "at=%lf,code=%d,after=%lf", &at_s, &code, &after_s) != 3)
    return std::nullopt;
  return train::LostBefore{
      .how = sentence_of_end(code) + ", and nobody was left to say more",
      .loss = {.known_at_s = at_s, .detection_s = after_s < 0 ? std::nullopt : std::optional(after_s)}};
}

std::string sentence_of_end(int code) {
  // Open MPI's own errors are negative, and 243 (-13) is no signal.
  if (code <= 128 || code - 128 > SIGRTMAX) return fmt::format("mpirun ended with {}", code);
  return fmt::format("mpirun ended with {} (signal {}, {})", code, code - 128, ::strsignal(code - 128));
}

int run_with_restarts(const std::vector<std::string>& line, int restarts,
                      const std::function<std::vector<std::string>(int attempt, const Ended&)>& again) {
  auto ended = run_line(line);
  for (int attempt = 1; is_worth_a_restart(ended.code); ++attempt) {
    if (ended.code > 128) std::fprintf(stderr, "paceline: %s\n", sentence_of_end(ended.code).c_str());
    if (attempt > restarts) break;
    const auto next = again(attempt, ended);
    if (next.empty()) return 0;
    ended = run_line(next);
  }
  return ended.code;
}

}  // namespace paceline::cli
