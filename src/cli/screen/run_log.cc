#include "cli/screen/run_log.h"

#include <utility>

#include "cluster/log.h"
#include "serve/http_server.h"

namespace paceline::cli {

RunLog::RunLog(const std::filesystem::path& directory, std::shared_ptr<train::StallListener> stalls)
    : log_(directory, log_line), stalls_(std::move(stalls)) {
  if (stalls_)
    stalls_->listen([this](const std::string& text) { write(measure::Event("stall").set("text", text)); });
}

RunLog::~RunLog() {
  if (stalls_) stalls_->listen({});
  if (is_open_) fail("");
}

void RunLog::write(const measure::Event& event) {
  if (event.name() == "start") is_open_ = true;
  if (event.name() == "end") is_open_ = false;
  log_.write(event);
}

std::vector<measure::Record> RunLog::guard(const std::function<std::vector<measure::Record>()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    if (is_open_) fail(error.what());
    throw;
  }
}

void RunLog::fail(const std::string& reason) {
  measure::Event end("end");
  end.set("status", "failed");
  if (!reason.empty()) end.set("reason", reason);
  write(end);
}

std::string watch_line(const std::filesystem::path& directory) {
  if (!serve::has_http_server()) return "";
  const auto name = directory.string();
  const bool is_plain = name.find_first_of(" \t\"'\\$`&|;<>()*?[]#~!{}") == std::string::npos;
  std::string word = name;
  if (!is_plain) {
    word = "'";
    for (const char letter : name) word += letter == '\'' ? "'\\''" : std::string(1, letter);
    word += '\'';
  }
  return "watch: paceline serve " + word;
}

}  // namespace paceline::cli
