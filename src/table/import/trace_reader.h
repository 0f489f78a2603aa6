#pragma once

/// Traces in Chrome's form, event by event: files of gigabytes, of which nothing stays but what the taker
/// keeps.

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace paceline::table {

/// One event with the fields that readers of traces use. Texts that it lacks are empty.
struct TraceEvent {
  std::string phase, category, name;   ///< ph, cat, name
  double begin_us = 0, length_us = 0;  ///< ts, dur
  bool has_begin = false;
  std::string process, thread;              ///< pid, tid
  std::map<std::string, std::string> args;  ///< numbers as text; what is nested deeper is left out
};

/// What stands beside the events, at most two levels down: "distributedInfo.rank".
using TraceFacts = std::map<std::string, std::string>;

/// Reads the events of `traceEvents`, or of a file that is one array, packed by gzip or not. `takes` sees
/// each event once.
///
/// Memory   one event, however large the file
/// Errors   Error(data) with the file and the byte; with `may_be_cut` a file that ends early is read to there
TraceFacts read_trace(const std::filesystem::path& path, bool may_be_cut,
                      const std::function<void(TraceEvent&)>& takes);

}  // namespace paceline::table
