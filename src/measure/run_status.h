#pragma once

/// RunStatus computes the progress of a run from its events, for `runs list`, `serve` and its metrics. A pure
/// function of the events.

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
  std::string status, reason;  ///< at the end: "complete", "interrupted", "failed"

  std::int64_t updates_done = 0, updates = 0;  ///< of a training; in a study: of the current cell
  std::int64_t epoch = 0;                      ///< from 1
  std::int64_t cells_done = 0, cells = 0;      ///< of a study; 0: a training
  std::string cell;                            ///< the current one

  std::optional<double> images_per_s, loss, learning_rate, step_s;  ///< the latest
  std::optional<double> train_accuracy, test_accuracy, validation_accuracy;
  /// The best cell with a core for each thread, and its rate; of a training its own mean, at the end.
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
