#include "measure/events.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "measure/environment.h"

namespace paceline::measure {
namespace {

template <typename T>
void take_if_there(std::optional<T>& place, const std::optional<T>& value) {
  if (value) place = value;
}

/// Whether byte `at` - 1 of the file ends a line.
bool ends_a_line(int file, std::int64_t at) {
  char last = 0;
  return ::pread(file, &last, 1, at - 1) == 1 && last == '\n';
}

/// Moves `at` behind the next end of a line and returns true, or to where the search has come. The holes of a
/// file, which a power loss may leave, are not read.
bool skip_line(int file, std::int64_t& at) {
  std::string part(EventTail::kMostLineBytes, '\0');
  while (true) {
    const auto data = ::lseek(file, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) {  // only a hole follows
      at = std::max<std::int64_t>(at, ::lseek(file, 0, SEEK_END));
      return false;
    }
    at = std::max<std::int64_t>(at, data);
    const auto got = ::pread(file, part.data(), part.size(), at);
    if (got <= 0) return false;
    const auto end = std::string_view(part).substr(0, static_cast<std::size_t>(got)).find('\n');
    at += end == std::string_view::npos ? got : static_cast<std::int64_t>(end) + 1;
    if (end != std::string_view::npos) return true;
  }
}

}  // namespace

void RunStatus::take_start(const Event& event) {
  const auto text = [&](const char* key) { return event.text(key).value_or(""); };
  const auto kept = *this;
  *this = {};
  has_begun = true;
  kind = text("kind");
  model = text("model");
  data = text("data");
  command = text("command");
  host = text("host");
  process = event.whole("process").value_or(0);
  started_at = event.at();
  updates = event.whole("updates").value_or(0);
  cells = event.whole("cells").value_or(0);
  // A continued run keeps its best value so far.
  best_images_per_s = kept.best_images_per_s;
  best_cell = kept.best_cell;
  best_accuracy = kept.best_accuracy;
  recent = kept.recent;
}

void RunStatus::take_speed(std::optional<double> speed) {
  if (!speed) return;
  images_per_s = speed;
  recent.push_back(*speed);
  if (recent.size() > kRecent) recent.erase(recent.begin());
}

void RunStatus::take_accuracy(const Event& event) {
  take_if_there(train_accuracy, event.number("train_accuracy"));
  take_if_there(test_accuracy, event.number("test_accuracy"));
  take_if_there(validation_accuracy, event.number("validation_accuracy"));
  const auto reached = event.number("validation_accuracy") ? event.number("validation_accuracy")
                       : validation_accuracy               ? std::nullopt
                                                           : event.number("test_accuracy");
  if (reached) best_accuracy = std::max(*reached, best_accuracy.value_or(0));
}

void RunStatus::take_cell_done(const Event& event) {
  cells_done = event.whole("done").value_or(cells_done + 1);
  cells = event.whole("cells").value_or(cells);  // a study adds repeats for disturbed cells
  cell.clear();
  updates_done = updates = epoch = 0;
  const auto speed = event.number("images_per_s");
  take_speed(speed);
  if (const auto reached = event.number("accuracy"))
    best_accuracy = std::max(*reached, best_accuracy.value_or(0));
  if (!speed || event.is_true("oversubscribed") || *speed <= best_images_per_s.value_or(0)) return;
  best_images_per_s = speed;
  best_cell = event.text("cell").value_or("");
}

void RunStatus::take(const Event& event) {
  const auto& name = event.name();
  if (name == "start") take_start(event);
  last_at = std::max(last_at, event.at());
  if (name == "cell_begun") {
    cell = event.text("cell").value_or("");
    updates_done = updates = epoch = 0;
  } else if (name == "cell_done") {
    take_cell_done(event);
  } else if (name == "end") {
    has_ended = true;
    status = event.text("status").value_or("failed");
    reason = event.text("reason").value_or("");
    cell.clear();
    if (!is_training()) {
      if (auto best = event.text("best_cell")) best_cell = *best;
      return take_if_there(best_images_per_s, event.number("best_images_per_s"));
    }
    take_if_there(best_images_per_s, event.number("images_per_s"));
    take_if_there(test_accuracy, event.number("test_accuracy"));
  } else if (name == "step" || name == "epoch" || name == "evaluation" || name == "resume") {
    updates_done = event.whole("update").value_or(updates_done);
    updates = event.whole("updates").value_or(updates);
    epoch = event.whole("epoch").value_or(epoch);
    take_if_there(loss, name == "epoch" ? event.number("train_loss") : event.number("loss"));
    take_if_there(learning_rate, event.number("lr"));
    take_if_there(step_s, event.number("step_s"));
    if (name == "step") take_speed(event.number("images_per_s"));
    take_accuracy(event);
  }
}

std::optional<double> RunStatus::progress() const {
  const double inside =
      updates > 0 ? std::clamp(static_cast<double>(updates_done) / static_cast<double>(updates), 0.0, 1.0)
                  : 0;
  if (cells > 0)
    return std::min(1.0, (static_cast<double>(cells_done) + inside) / static_cast<double>(cells));
  return updates > 0 ? std::optional(inside) : std::nullopt;
}

EventLog::EventLog(std::filesystem::path directory, std::function<void(const std::string&)> say)
    : path_(std::move(directory) / kEventsFile), say_(std::move(say)) {}

bool EventLog::open() {
  if (file_.is_open()) return true;
  // Links are not followed, because the file is this run's own. Also readable, to check its last byte.
  file_ = base::Descriptor(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  // A killed run or a full disk may have left an incomplete line: end it, so that it stays separate.
  struct stat now {};
  if (!file_.is_open() || (::fstat(file_.get(), &now) == 0 && now.st_size > 0 &&
                           !ends_a_line(file_.get(), now.st_size) && ::write(file_.get(), "\n", 1) != 1))
    give_up(errno);
  return !given_up_;
}

void EventLog::give_up(int error) {
  given_up_ = true;
  if (say_)
    say_(fmt::format("{}: {}; the run goes on without it", path_.string(), base::reason_of_write(error)));
}

void EventLog::write(const Event& event) {
  const auto line = to_json(event) + "\n";
  const std::lock_guard lock(mutex_);
  if (given_up_ || !open()) return;
  ssize_t written = 0;
  do written = ::write(file_.get(), line.data(), line.size());
  while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return;
  give_up(written < 0 ? errno : ENOSPC);  // written in part: the disk is full
}

void EventLog::reopen() {
  const std::lock_guard lock(mutex_);
  file_.close();
  given_up_ = false;
}

EventTail::EventTail(std::filesystem::path file, std::int64_t from)
    : file_(std::move(file)), offset_(std::max<std::int64_t>(from, 0)) {
  const base::Descriptor opened(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat now {};
  if (offset_ > 0 && (!opened.is_open() || ::fstat(opened.get(), &now) != 0 || offset_ > now.st_size ||
                      !ends_a_line(opened.get(), offset_)))
    offset_ = 0;
}

std::vector<EventTail::Line> EventTail::read(std::int64_t most_bytes) {
  struct stat now {};
  if (::lstat(file_.c_str(), &now) != 0 || !S_ISREG(now.st_mode)) return {};
  const auto inode = static_cast<std::uint64_t>(now.st_ino);
  if ((inode_ != 0 && inode != inode_) || now.st_size < offset_) {
    offset_ = searched_ = 0;
    damaged_at_.reset();
    ++restarts_;
  }
  inode_ = inode;
  if (now.st_size == std::max(offset_, searched_)) return {};
  const base::Descriptor opened(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!opened.is_open()) return {};
  std::vector<Line> lines;
  while (lines.empty()) {
    if (searched_ > offset_) {  // inside a line that is too long
      if (!skip_line(opened.get(), searched_)) return {};
      offset_ = searched_;
      if (offset_ >= now.st_size) return {};
    }
    std::string text;
    // A line longer than most_bytes is read completely.
    for (auto bytes = std::min(now.st_size - offset_, most_bytes);;
         bytes = std::min({now.st_size - offset_, 2 * bytes, kMostLineBytes})) {
      text.resize(static_cast<std::size_t>(bytes));
      const auto got = ::pread(opened.get(), text.data(), text.size(), offset_);
      text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      if (text.find('\n') != std::string::npos || got < bytes || bytes == now.st_size - offset_ ||
          bytes >= kMostLineBytes)
        break;
    }
    std::size_t begin = 0;
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      lines.push_back({text.substr(begin, end - begin), offset_ + static_cast<std::int64_t>(end) + 1});
      begin = end + 1;
    }
    if (!lines.empty()) {
      offset_ = lines.back().end;
    } else {
      if (static_cast<std::int64_t>(text.size()) < kMostLineBytes) return {};  // not whole yet
      if (!damaged_at_) damaged_at_ = offset_;
      searched_ = offset_ + kMostLineBytes;
    }
  }
  return lines;
}

Event::Event(std::string name) : Event(std::move(name), unix_now()) {}

Event start_of(const std::string& kind, const std::string& command) {
  return Event("start")
      .set("schema", kEventsSchema)
      .set("kind", kind)
      .set("command", command)
      .set("version", version())
      .set("host", base::host_name())
      .set("process", static_cast<std::int64_t>(::getpid()));
}

Event& Event::add(std::string key, Value value) {
  fields_.emplace_back(std::move(key), std::move(value));
  return *this;
}

/// The first field of that name, if it is a T.
template <typename T>
std::optional<T> Event::find(std::string_view key) const {
  const auto found = std::ranges::find(fields_, key, &std::pair<std::string, Value>::first);
  const auto* value = found == fields_.end() ? nullptr : std::get_if<T>(&found->second);
  return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

std::optional<double> Event::number(std::string_view key) const {
  if (const auto integer = find<std::int64_t>(key)) return static_cast<double>(*integer);
  return find<double>(key);
}

std::optional<std::int64_t> Event::whole(std::string_view key) const { return find<std::int64_t>(key); }

std::optional<std::string> Event::text(std::string_view key) const { return find<std::string>(key); }

bool Event::is_true(std::string_view key) const { return find<bool>(key).value_or(false); }

std::string to_json(const Event& event) {
  using Json = nlohmann::ordered_json;
  Json json{{"event", event.name()}, {"at", std::round(event.at() * 1e3) / 1e3}};
  // Appended, because an assignment by name would compare it with all others.
  auto& members = json.get_ref<Json::object_t&>();
  for (const auto& [key, value] : event.fields())
    std::visit([&, &name = key](const auto& one) { members.emplace_back(name, one); }, value);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

/// Takes the fields of a line as the parser meets them: of a key that occurs twice the last value, at the
/// place of the first. Lists, objects and null are no fields.
class LineFields : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Field = std::pair<std::string, std::optional<Event::Value>>;

  bool null() override { return take(std::nullopt); }
  bool boolean(bool value) override { return take(value); }
  bool number_integer(number_integer_t value) override { return take(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override { return take(static_cast<std::int64_t>(value)); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return take(value); }
  bool string(string_t& value) override { return take(base::visible(value)); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return depth_++ == 0 || take(std::nullopt, 2); }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t /*size*/) override { return depth_++ > 0 && take(std::nullopt, 2); }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& key) override {
    if (depth_ != 1) return true;
    const auto [found, is_new] = places_.try_emplace(key, fields_.size());
    place_ = found->second;
    if (is_new) fields_.emplace_back(std::move(key), std::nullopt);
    return true;
  }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

  [[nodiscard]] std::vector<Field>& fields() { return fields_; }

 private:
  /// Keeps the value of a field, if the parser stands `depth` deep.
  bool take(std::optional<Event::Value> value, int depth = 1) {
    if (depth_ == depth) fields_[place_].second = std::move(value);
    return depth_ > 0;
  }

  std::vector<Field> fields_;
  std::unordered_map<std::string, std::size_t> places_;
  std::size_t place_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<Event> event_from_json(std::string_view line) {
  if (line.size() > static_cast<std::size_t>(EventTail::kMostLineBytes)) return std::nullopt;
  LineFields parsed;
  if (!nlohmann::json::sax_parse(line, &parsed)) return std::nullopt;
  const std::string* name = nullptr;
  std::optional<double> at;
  for (const auto& [key, value] : parsed.fields()) {
    if (key == "event" && value) name = std::get_if<std::string>(&*value);
    if (key != "at" || !value) continue;
    if (const auto* real = std::get_if<double>(&*value)) at = *real;
    if (const auto* whole = std::get_if<std::int64_t>(&*value)) at = static_cast<double>(*whole);
  }
  if (name == nullptr || !at) return std::nullopt;
  Event event(*name, *at);
  for (auto& [key, value] : parsed.fields())
    if (value && key != "event" && key != "at")
      std::visit([&, &name_of = key](auto& one) { event.set(name_of, std::move(one)); }, *value);
  return event;
}

}  // namespace paceline::measure
