#pragma once

/// Screen writes the output for the user while a command runs: permanent lines, and one progress bar.
///
/// On a terminal the bar is redrawn in place on standard error, at most ten times a second; elsewhere (a
/// file, a CI log) only the lines are written. Lines go to standard output, or to standard error if standard
/// output is reserved for JSON. A run does not wait for whoever reads them (base/line_output.h).

#include <fmt/core.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/line_output.h"
#include "measure/events.h"
#include "measure/record.h"
#include "train/given/backend.h"
#include "train/given/job.h"

namespace paceline::cli {

// A command's events.jsonl: events that every command has, and its end.

/// Threads  any
class RunLog {
 public:
  /// `stalls`: this object listens to it until it is destroyed.
  /// `follow`, if given, is asked before the events of steps, epochs and cells: if the directory was moved
  /// away it makes it anew and says so. The events then go on there, behind a copy of "start".
  RunLog(const std::filesystem::path& directory, std::shared_ptr<train::StallListener> stalls,
         std::function<std::string()> follow = {});
  /// If the run has begun and its end was not written, writes that it failed for an unknown reason.
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void write(const measure::Event& event);
  /// Runs `work`. If it throws and the run has begun, writes the exception as the run's end.
  auto guard(const auto& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      if (is_open_) fail(error.what());
      throw;
    }
  }

 private:
  void fail(const std::string& reason);

  measure::EventLog log_;
  std::shared_ptr<train::StallListener> stalls_;
  const std::function<std::string()> follow_;
  std::optional<measure::Event> start_;
  std::atomic<bool> is_open_ = false;  ///< "start" was written, but no "end"
};

/// "watch: paceline serve DIR": how to follow the run, printed at its start; "" if the program was built
/// without a server.
[[nodiscard]] std::string watch_line(const std::filesystem::path& directory);

/// The contents of the progress bar.
struct Bar {
  std::string name{};  ///< "scale"
  std::int64_t done = 0, all = 0;
  std::string unit{};              ///< behind "31/54": "steps"
  std::string doing{};             ///< "weak 2 x 128, repeat 2"
  std::string rate{};              ///< "34 ms/step", "loss 0.81  1,234 images/s"
  double elapsed_s = 0;            ///< since the command began
  std::optional<double> left_s{};  ///< none: unknown yet
};

/// Whether lines wait for a reader that pauses, as those of a report do, or a run goes on without it.
enum class Waits : std::uint8_t { for_reader, never };

/// Threads  any; lines are never mixed
class Screen {
 public:
  explicit Screen(bool json, Waits waits = Waits::for_reader);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// On a terminal broken between words, elsewhere (a file, a log) one line.
  void say(const std::string& line);
  template <typename One, typename... More>
  void say(fmt::format_string<One, More...> format, One&& one, More&&... more) {
    say(fmt::format(format, std::forward<One>(one), std::forward<More>(more)...));
  }
  /// Redraws the bar if there is a terminal.
  void draw(const Bar& bar);
  void clear_bar();

  [[nodiscard]] bool is_live() const { return live_; }
  [[nodiscard]] int width() const { return width_; }
  /// Whether sentences are broken to the width.
  [[nodiscard]] bool breaks() const { return breaks_; }
  [[nodiscard]] bool colour() const { return colour_; }
  /// Callbacks for the progress of one training; they refer to this screen.
  [[nodiscard]] train::Progress progress();

 private:
  void clear_locked();
  void draw_text(const std::string& text);

  std::mutex mutex_;
  bool json_;
  bool live_;  ///< standard error is a terminal: the bar can be redrawn
  /// Lines go to a terminal of known width, and sentences are broken to it. A terminal without a width is
  /// mpirun's, whose output may go to a file.
  bool breaks_;
  bool colour_;  ///< standard output is a terminal, and NO_COLOR is not set
  int width_;
  bool drawn_ = false;
  base::TimePoint last_{};
  /// Of lines and of the bar, the same object if they go to the same place; null: written at once.
  std::shared_ptr<base::LineOutput> lines_, bar_;
};

/// Columns of the terminal at `descriptor`; `elsewhere` if there is none, or if it is very narrow.
[[nodiscard]] int terminal_width(int descriptor, int elsewhere);
/// `text` broken into lines of at most `width` columns, except for longer words; existing line ends stay. A
/// line goes on below its text, behind the column of its label.
[[nodiscard]] std::string broken(std::string_view text, int width);
/// Writes to standard output; on a terminal lines are broken to its width.
void print(const std::string& text);
template <typename One, typename... More>
void print(fmt::format_string<One, More...> format, One&& one, More&&... more) {
  print(fmt::format(format, std::forward<One>(one), std::forward<More>(more)...));
}
/// " scale     ━━━━━━━╸────────────  31/54  weak 2 x 128, repeat 2   34 ms/step   0:41 < 0:19". If it is
/// wider than `width`, the current activity is left out first, then the rate; the rest is cut.
[[nodiscard]] std::string bar_text(const Bar& bar, int width);
/// The same for a log: "  scale     31/54  weak 2 x 128, repeat 2   57 %   0:41 < 0:19".
[[nodiscard]] std::string bar_line(const Bar& bar);
/// 41 -> "0:41", 4000 -> "1:06:40".
[[nodiscard]] std::string clock_text(double seconds);

}  // namespace paceline::cli
