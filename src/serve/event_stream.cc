#include "serve/event_stream.h"

#include <fmt/format.h>

#include <charconv>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "measure/events.h"

namespace paceline::serve {
namespace {

constexpr std::int64_t kPieceBytes = 256 * 1024;

void wait(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

EventStream::EventStream(std::filesystem::path file, std::int64_t from, std::stop_token stop,
                         std::chrono::milliseconds look)
    : file_(std::move(file)), tail_(file_, from), stop_(std::move(stop)), look_(look) {}

std::optional<std::string> EventStream::next() {
  if (stop_.stop_requested()) return std::nullopt;
  constexpr std::chrono::milliseconds kSilence{10'000};
  std::string text;
  if (!std::exchange(has_begun_, true)) text = "retry: 2000\n\n";
  const auto before = tail_.offset();
  for (const auto& line : tail_.read(kPieceBytes)) {
    // The file was begun anew: what the client has is of another run.
    if (line.end <= before && text.find("event: reset") == std::string::npos)
      text += "event: reset\ndata: {}\n\n";
    if (const auto event = measure::event_from_json(line.text))
      text += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", line.end, event->name(), line.text);
  }
  if (!text.empty()) {
    silent_looks_ = 0;
    return text;
  }
  wait(stop_, look_);
  if (++silent_looks_ * look_ < kSilence) return "";
  silent_looks_ = 0;
  return ": still here\n\n";
}

std::int64_t event_id(const std::string& text) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size() && id > 0 ? id : 0;
}

}  // namespace paceline::serve
