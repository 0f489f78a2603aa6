#include "serve/event_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/thread_pool.h"

namespace paceline::serve {
namespace {

constexpr std::int64_t kPieceBytes = 256 * 1024;

std::string server_sent(const std::vector<measure::EventTail::Line>& lines) {
  std::string text;
  for (const auto& line : lines)
    if (const auto event = measure::event_from_json(line.text))
      text += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", line.end, event->name(), line.text);
  return text;
}

}  // namespace

EventFeed::EventFeed(std::filesystem::path file, std::chrono::milliseconds look)
    : path_(std::move(file)), tail_(path_) {
  this->look();
  thread_ = std::jthread([this, look](const std::stop_token& stop) {
    while (!base::stopped_within(stop, look)) this->look();
  });
}

void EventFeed::look() {
  const auto before = tail_.restarts();
  auto begin = tail_.offset();
  auto lines = tail_.read(kPieceBytes);
  const bool has_restarted = tail_.restarts() != before;
  if (has_restarted) begin = 0;
  if (lines.empty() && !has_restarted) return;
  std::string text;
  while (!lines.empty()) {
    if (static_cast<std::int64_t>(text.size()) >
        kPieceBytes) {  // a client that is far behind reads the file itself
      begin = lines.front().end - static_cast<std::int64_t>(lines.front().text.size()) - 1;
      text.clear();
    }
    text += server_sent(lines);
    lines = tail_.read(kPieceBytes);
  }
  const std::lock_guard lock(mutex_);
  news_ = {.begin = begin,
           .end = tail_.offset(),
           .file = news_.file + (has_restarted ? 1 : 0),
           .text = std::make_shared<const std::string>(std::move(text))};
  changed_.notify_all();
}

EventFeed::News EventFeed::wait(std::int64_t at, std::uint64_t file, std::chrono::milliseconds longest,
                                const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, longest, [&] { return news_.end != at || news_.file != file; });
  return news_;
}

EventStream::EventStream(std::shared_ptr<EventFeed> feed, std::int64_t from, std::stop_token stop,
                         std::chrono::milliseconds silence)
    : feed_(std::move(feed)),
      stop_(std::move(stop)),
      silence_(silence),
      at_(measure::EventTail(feed_->path(), from).offset()),
      file_(feed_->wait(-1, 0, std::chrono::milliseconds(0), stop_).file) {}

std::optional<std::string> EventStream::next() {
  if (stop_.stop_requested()) return std::nullopt;
  std::string text;
  if (!std::exchange(has_begun_, true)) text = "retry: 2000\n\n";
  const auto news = feed_->wait(at_, file_, text.empty() ? silence_ : std::chrono::milliseconds(0), stop_);
  if (news.file != file_) {  // the client's position belongs to another run
    file_ = news.file;
    at_ = 0;
    text += "event: reset\ndata: {\"event\":\"reset\",\"at\":0}\n\n";
  }
  if (news.text && news.begin == at_) {
    at_ = news.end;
    return text + *news.text;
  }
  if (at_ != news.end) {
    measure::EventTail tail(feed_->path(), at_);
    text += server_sent(tail.read(kPieceBytes));
    at_ = tail.offset();
  }
  if (stop_.stop_requested() && text.empty()) return std::nullopt;
  return text.empty() ? ": still here\n\n" : text;
}

std::int64_t event_id(const std::string& text) {
  return std::max<std::int64_t>(base::to_number<std::int64_t>(text).value_or(0), 0);
}

}  // namespace paceline::serve
