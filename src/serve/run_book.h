#pragma once

/// Finds the runs below a directory by their files: events, or in older runs records.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "measure/events.h"

namespace paceline::serve {

enum class RunState { running, complete, interrupted, failed };
[[nodiscard]] std::string_view name(RunState state);

struct Run {
  std::string id;  ///< its path below the directory, "train-20260131-120000"; "." is that directory
  std::filesystem::path path;  ///< relative to the program's working directory
  RunState state = RunState::interrupted;
  measure::RunStatus status;
  double changed_at = 0;   ///< UTC, seconds since 1970: of the last event, else of the newest record
  std::int64_t bytes = 0;  ///< of its event file
};

/// The files with a run's records.
struct RecordFiles {
  std::vector<std::filesystem::path> paths;
  std::string stamp;      ///< changes whenever one of them is written
  double changed_at = 0;  ///< of the newest: UTC, seconds since 1970
};
/// Cost     a look at each file, which is not opened
[[nodiscard]] RecordFiles record_files(const std::filesystem::path& folder);

/// Finds runs, and remembers how far their event files were read and what their records say, so that later
/// calls read only what is new. It reads regular files alone, and of records none above 64 MiB: whoever may
/// write below the directory must not stall its readers.
///
/// Threads  one at a time
class RunBook {
 public:
  /// `directory` need not exist.
  explicit RunBook(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// All runs, the most recently changed first. Does not look into a run's own folders, and follows no links.
  ///
  /// Cost     a directory walk, at most five folders deep; reading what is new in event files
  [[nodiscard]] std::vector<Run> list();

 private:
  struct Followed {
    measure::EventTail tail;
    measure::RunStatus status;
  };
  void walk(const std::filesystem::path& folder, int depth, std::vector<Run>& runs);
  Run read(const std::filesystem::path& folder);
  /// What the records of a run say, and the state of their files when they were read.
  struct KeptRecords {
    std::string stamp;
    measure::RunStatus status;
  };
  void read_events(const std::filesystem::path& folder, Run& run);
  void read_records(const std::filesystem::path& folder, Run& run);

  std::filesystem::path directory_;
  std::map<std::string, Followed> followed_;    ///< by path
  std::map<std::string, KeptRecords> records_;  ///< by path
};

/// The state of a run for a client without its events: an event "status" with the fields of RunStatus.
[[nodiscard]] measure::Event status_event(const Run& run);

/// "12 s", "5 min", "3 h", "2 d"
[[nodiscard]] std::string age(double seconds);
/// "31 of 82 cells", "epoch 3, 1,200 of 4,000 updates", or "" if nothing is known.
[[nodiscard]] std::string progress_text(const measure::RunStatus& status);
/// "84.25 %", "8,557 images/s", or "".
[[nodiscard]] std::string best_text(const measure::RunStatus& status);

}  // namespace paceline::serve
