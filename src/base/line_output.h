#pragma once

/// Writes lines whose reader may pause or be gone: a pager that shows its first page, a terminal stopped by
/// Ctrl-S, a log driver that hangs. Who writes does not wait for the reader, and a reader that is gone ends
/// nobody: there is no SIGPIPE.

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/descriptor.h"

namespace paceline::base {

/// Whether a reader of `descriptor` can make a writer wait: a pipe, a socket or a terminal, but not a file.
[[nodiscard]] bool has_reader(int descriptor);

/// Writes `text` and waits at most `patience` for its reader. Returns how much of it was written; all of it
/// also if the reader is gone.
///
/// Threads  any
[[nodiscard]] std::size_t write_within(int descriptor, std::string_view text,
                                       std::chrono::milliseconds patience);

/// Starts a process of its own (`cat`) that writes `text` as soon as the reader reads again, so that this
/// process can end before. That process ends when the reader has read all or is gone; nobody waits for it,
/// and it has no other descriptor of this one. Without a `cat` the text is lost.
///
/// Threads  any
void leave_to_cat(int descriptor, std::string_view text);

/// Whether a process is one of leave_to_cat(), which whoever waits for his processes leaves alone.
[[nodiscard]] bool writes_left_output(pid_t process);

/// Lines of a run, which a thread writes. While the reader pauses they are kept: the last `most_bytes` of
/// them, and a line that says how many are missing. Of a pipe only half is filled, so that the last lines
/// of the run, and messages of other processes that share it, find room.
///
/// Threads  any
class LineOutput {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 10;

  /// Starts the thread. If the system refuses it, write() itself waits a moment for the reader.
  explicit LineOutput(int descriptor, std::size_t most_bytes = kMostBytes);
  /// Waits a second for the reader, then leaves what is not written to leave_to_cat().
  ~LineOutput();
  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;

  /// `lines` end with the end of a line.
  void write(std::string lines);
  /// Text that only counts until the next one, such as a progress bar: it replaces one that still waits, and
  /// does not count as missing.
  void draw(std::string text);

 private:
  struct Piece {
    std::string text;
    bool is_drawing = false;
  };
  void add(Piece piece);
  void run();
  /// Writes until all is written, the reader is gone, or the end has come; returns what is left.
  [[nodiscard]] std::string_view write_out(std::string_view text);
  [[nodiscard]] bool has_room(std::size_t bytes);

  const int descriptor_;
  const std::size_t most_bytes_;
  const Descriptor own_;  ///< the same, opened anew so that no write waits; none: that is not possible
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Piece> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::int64_t missing_ = 0;  ///< lines that were left out before the first waiting piece
  bool is_ending_ = false, is_gone_ = false;
  TimePoint end_{};   ///< when it ends, if it is_ending_
  std::string rest_;  ///< of the piece that the thread was writing at the end
  std::thread thread_;
};

}  // namespace paceline::base
