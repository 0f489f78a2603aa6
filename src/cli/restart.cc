#include "cli/restart.h"

#include <signal.h>

#include <cstdlib>

#include "base/error.h"
#include "cli/child.h"
#include "train/checkpoint.h"
#include "train/earlier_epochs.h"

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

std::optional<double> read_lost_at() {
  const char* text = std::getenv(kLostAt);
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  return *text != '\0' && *end == '\0' ? std::optional(value) : std::nullopt;
}

int run_with_restarts(const std::vector<std::string>& line, int restarts,
                      const std::function<std::vector<std::string>(int attempt)>& again) {
  int code = run_line(line);
  for (int attempt = 1; attempt <= restarts && is_worth_a_restart(code); ++attempt) {
    code = run_line(again(attempt));
  }
  return code;
}

}  // namespace paceline::cli
