#pragma once

/// How far a run is, from its events: what `runs list`, `serve` and its metrics show. A pure function of
/// lines.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/events.h"

namespace paceline::measure {

struct RunStatus {
  bool has_begun = false;
  std::string kind;  ///< "train", "study", "sweep" ...
  std::string model, data, command, host;
  std::int64_t process = 0;
  double started_at = 0, last_at = 0;  ///< UTC, seconds since 1970

  bool has_ended = false;
  std::string status, reason;  ///< of the end: "complete", "interrupted", "failed"

  std::int64_t updates_done = 0, updates = 0;  ///< of a training; of a study: of the cell that is running
  std::int64_t epoch = 0;                      ///< from 1
  std::int64_t cells_done = 0, cells = 0;      ///< of a study; 0: a training
  std::string cell;                            ///< that is running

  std::optional<double> images_per_s, loss, learning_rate, step_s;  ///< the latest
  std::optional<double> train_accuracy, test_accuracy, validation_accuracy;
  /// The most of any cell with a core for each thread, and that cell; of a training its own mean, at the end.
  std::optional<double> best_images_per_s;
  std::string best_cell;
  /// On validation where it is evaluated there, else on the test set.
  std::optional<double> best_accuracy;

  static constexpr std::size_t kRecent = 40;
  std::vector<double> recent;  ///< images/s of the last steps or cells that were told, oldest first

  /// The events of a file in order. A start behind an end is a run that goes on.
  void take(const Event& event);
  [[nodiscard]] bool is_training() const { return cells == 0; }
  /// Part of it that is done, 0 to 1; nothing where it is not known.
  [[nodiscard]] std::optional<double> progress() const;

 private:
  void take_start(const Event& event);
  void take_cell_done(const Event& event);
  void take_accuracy(const Event& event);
  void take_speed(std::optional<double> speed);
};

}  // namespace paceline::measure
