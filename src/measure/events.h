#pragma once

/// Events of a run in progress, one JSON object per line: DIR/events.jsonl (docs/formats.md). Trainings and
/// studies write them; `runs`, `serve` and TensorBoard files are made from them. RunStatus is a run's state
/// by its events.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/descriptor.h"

namespace paceline::measure {

inline constexpr const char* kEventsFile = "events.jsonl";
inline constexpr const char* kEventsSchema = "paceline-events-1";

/// One event: a name and its fields, in the order in which they are written.
class Event {
 public:
  using Value = std::variant<std::string, std::int64_t, double, bool>;

  /// An event of now.
  explicit Event(std::string name);
  Event(std::string name, double at) : name_(std::move(name)), at_(at) {}

  // Adds a field. Empty optionals and numbers that are not finite are left out.
  Event& set(std::string key, std::string value) { return add(std::move(key), std::move(value)); }
  Event& set(std::string key, const char* value) { return set(std::move(key), std::string(value)); }
  Event& set(std::string key, double value) {
    return std::isfinite(value) ? add(std::move(key), value) : *this;
  }
  Event& set(std::string key, std::int64_t value) { return add(std::move(key), value); }
  Event& set(std::string key, int value) { return set(std::move(key), std::int64_t{value}); }
  Event& set(std::string key, bool value) { return add(std::move(key), value); }
  template <typename T>
  Event& set(std::string key, const std::optional<T>& value) {
    return value ? set(std::move(key), *value) : *this;
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] double at() const { return at_; }  ///< UTC, seconds since 1970
  [[nodiscard]] const std::vector<std::pair<std::string, Value>>& fields() const { return fields_; }

  // The value of a field; nothing if there is none of that type.
  [[nodiscard]] std::optional<double> number(std::string_view key) const;
  [[nodiscard]] std::optional<std::int64_t> whole(std::string_view key) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  [[nodiscard]] bool is_true(std::string_view key) const;

 private:
  Event& add(std::string key, Value value);
  template <typename T>
  [[nodiscard]] std::optional<T> find(std::string_view key) const;

  std::string name_;
  double at_;
  std::vector<std::pair<std::string, Value>> fields_;
};

/// The event with which a run begins: schema, kind, command, version, host and process.
[[nodiscard]] Event start_of(const std::string& kind, const std::string& command);

/// One line, without its end. Bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string to_json(const Event& event);

/// Parses a line; nothing if it is no event, incomplete, or longer than EventTail::kMostLineBytes. Skips
/// fields of other types (lists, objects, null). Texts are escaped by base::visible().
///
/// Cost     n log n in the fields
[[nodiscard]] std::optional<Event> event_from_json(std::string_view line);

/// Appends events to a run's file. Each line is written to the system at once, by one write, so readers see
/// it immediately, and a killed run loses none. If the file cannot be written (a full disk), that is reported
/// once, and the run continues without it.
///
/// Threads  any
/// Cost     some microseconds per line; nothing is synced
class EventLog {
 public:
  /// The first event creates the file in `directory`; existing contents stay. `say` is called once if the
  /// file cannot be written, with the reason.
  EventLog(std::filesystem::path directory, std::function<void(const std::string&)> say);

  void write(const Event& event);
  /// The next event opens the file anew: its directory is another one.
  void reopen();

 private:
  [[nodiscard]] bool open();
  void give_up(int error);

  const std::filesystem::path path_;
  const std::function<void(const std::string&)> say_;
  std::mutex mutex_;
  base::Descriptor file_;
  bool given_up_ = false;
};

/// Reads what was appended since the last call. An incomplete last line is left for the next call. Lines that
/// are no events are returned too; the parser skips them. A line of more than kMostLineBytes is damage, such
/// as a power loss leaves: it is passed over, in little memory.
///
/// Threads  one at a time
class EventTail {
 public:
  static constexpr std::int64_t kMostLineBytes = std::int64_t{1} << 20;

  struct Line {
    std::string text;      ///< without its end
    std::int64_t end = 0;  ///< file offset behind the line: where another reader can continue
  };

  /// Begins at byte `from`, which is the `end` of a line or 0. Any other value means 0.
  explicit EventTail(std::filesystem::path file, std::int64_t from = 0);

  /// The new complete lines: at most `most_bytes`, but at least one if there is one; empty if there is no
  /// file. A file that was replaced or truncated is read from its beginning.
  ///
  /// Cost     a system call if nothing is new
  [[nodiscard]] std::vector<Line> read(std::int64_t most_bytes = std::int64_t{1} << 20);
  [[nodiscard]] std::int64_t offset() const { return offset_; }
  /// How often the file was replaced or truncated; then read() returns lines of another run.
  [[nodiscard]] std::uint64_t restarts() const { return restarts_; }
  /// Where the first line that is too long begins; nothing if none was met.
  [[nodiscard]] std::optional<std::int64_t> damaged_at() const { return damaged_at_; }

 private:
  std::filesystem::path file_;
  std::int64_t offset_ = 0;
  std::int64_t searched_ = 0;  ///< beyond offset_: the line there is too long, and does not end before this
  std::optional<std::int64_t> damaged_at_;
  std::uint64_t restarts_ = 0;
  std::uint64_t inode_ = 0;  ///< of the file that offset_ belongs to; 0: unknown yet
};

// RunStatus computes the progress of a run from its events, for `runs list`, `serve` and its metrics. A pure
// function of the events.

struct RunStatus {
  bool has_begun = false;
  std::string kind;  ///< "train", "study", "sweep" ...
  std::string model, data, command, host;
  std::int64_t process = 0;
  double started_at = 0, last_at = 0;  ///< UTC, seconds since 1970

  bool has_ended = false;
  std::string status, reason;  ///< at the end: "complete", "interrupted", "failed"

  std::int64_t updates_done = 0, updates = 0;  ///< of a training; in a study: of the current cell
  std::int64_t epoch = 0;                      ///< from 1
  std::int64_t cells_done = 0, cells = 0;      ///< of a study; 0: a training
  std::string cell;                            ///< the current one

  std::optional<double> images_per_s, loss, learning_rate, step_s;  ///< the latest
  std::optional<double> train_accuracy, test_accuracy, validation_accuracy;
  /// The best cell with a core for each thread, and its rate: of a run in progress the fastest record, at the
  /// end what the report recommends; of a training its own mean, at the end.
  std::optional<double> best_images_per_s;
  std::string best_cell;
  /// On the validation set if that is evaluated, else on the test set.
  std::optional<double> best_accuracy;

  static constexpr std::size_t kRecent = 40;
  std::vector<double> recent;  ///< images/s of the last reported steps or cells, oldest first

  /// Takes the next event of a file. A start after an end means that the run was continued.
  void take(const Event& event);
  [[nodiscard]] bool is_training() const { return cells == 0; }
  /// The part that is done, 0 to 1; nothing if it is unknown.
  [[nodiscard]] std::optional<double> progress() const;

 private:
  void take_start(const Event& event);
  void take_cell_done(const Event& event);
  void take_accuracy(const Event& event);
  void take_speed(std::optional<double> speed);
};

}  // namespace paceline::measure
