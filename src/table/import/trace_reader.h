#pragma once

/// Reads traces in Chrome's format event by event, so that files of gigabytes need little memory.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace paceline::table {

// Unions and differences of sets of time intervals, for traces.

struct Stretch {
  double begin = 0, end = 0;
};

/// In order and without overlaps.
using Stretches = std::vector<Stretch>;

/// The union, in order and without overlaps. Intervals that end before they begin are left out.
[[nodiscard]] Stretches united(std::vector<Stretch> any);
[[nodiscard]] Stretches without(const Stretches& from, const Stretches& what);
/// The part between `begin` and `end`.
[[nodiscard]] Stretches clipped(const Stretches& from, double begin, double end);
[[nodiscard]] double length(const Stretches& all);

/// Members beside the events, at most two levels deep: "distributedInfo.rank".
using TraceFacts = std::map<std::string, std::string>;
/// The text of a key; "" if there is none.
[[nodiscard]] std::string text_in(const TraceFacts& facts, const std::string& key);

/// One event with the fields that importers use. Missing texts are empty.
struct TraceEvent {
  std::string phase, category, name;   ///< ph, cat, name
  double begin_us = 0, length_us = 0;  ///< ts, dur
  bool has_begin = false;
  std::string process, thread;  ///< pid, tid
  TraceFacts args;              ///< numbers as text; deeper nesting is left out
};

/// Reads the events of `traceEvents`, or of a file that is one array, with or without gzip. Calls `takes`
/// once for each event.
///
/// Memory   one event, however large the file is
/// Errors   Error(data) with the file and the byte; with `may_be_cut` a truncated file is read to its end
TraceFacts read_trace(const std::filesystem::path& path, bool may_be_cut,
                      const std::function<void(TraceEvent&)>& takes);

}  // namespace paceline::table
