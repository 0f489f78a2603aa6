#pragma once

/// What a person sees while a command runs: lines that stay, and one bar that does not.
///
/// On a terminal the bar is redrawn in place on standard error, at most ten times a second; elsewhere (a
/// file, a CI log) nothing is redrawn and only the lines are written. Lines go to standard output, or to
/// standard error when standard output is kept for JSON.

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "measure/record.h"
#include "train/progress.h"

namespace paceline::cli {

/// Threads  any; lines are whole
class Screen {
 public:
  explicit Screen(bool json);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void say(const std::string& line);
  /// The same for a sentence: on a terminal broken between words, elsewhere (a file, a log) one line. Tables
  /// are for say.
  void explain(const std::string& sentence);
  /// Redraws the bar; `label` stands in front of it ("cell 3 of 18").
  void bar(std::int64_t step, std::int64_t steps, double loss, double images_per_s);
  void label(const std::string& text);
  void clear_bar();

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] bool colour() const { return colour_; }
  /// The callbacks that a run tells its progress through; they keep a reference to this screen.
  [[nodiscard]] train::Progress progress();

 private:
  void clear_locked();

  std::mutex mutex_;
  bool json_;
  bool live_;  ///< standard error is a terminal: the bar can be redrawn
  /// Lines go to a terminal of a known width, and sentences are broken to it. One of no width is mpirun's,
  /// behind which may stand a file.
  bool breaks_;
  bool colour_;  ///< standard output is a terminal, and NO_COLOR is not set
  int width_;
  bool drawn_ = false;
  base::TimePoint last_{};
  std::string label_;
};

/// Columns of the terminal behind `descriptor`; `elsewhere` where there is none, or one too narrow to care
/// for.
[[nodiscard]] int terminal_width(int descriptor, int elsewhere);
/// "epoch 3   loss 0.8123   train 71.23 %   test 70.10 %   lr 0.1   12.3 s"
[[nodiscard]] std::string epoch_line(const measure::EpochRecord& epoch);
/// `text` in lines of at most `width` columns, but for longer words; what was a line's begin stays one.
[[nodiscard]] std::string broken(std::string_view text, int width);
/// [=====>    ] and its text, cut to `width`.
[[nodiscard]] std::string bar_text(std::string_view label, std::int64_t step, std::int64_t steps, double loss,
                                   double images_per_s, int width);

}  // namespace paceline::cli
