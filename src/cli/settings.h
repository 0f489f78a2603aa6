#pragma once

/// What a command was told, after recipe and command line are joined: one struct that all commands are given.

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor.h"
#include "study/study.h"
#include "train/options.h"

namespace paceline::cli {

class Session;

/// The commands, as bits: an option's row says which of them take it.
enum Command : unsigned {
  kTrain = 1u << 0,
  kSweep = 1u << 1,
  kScale = 1u << 2,
  kConverge = 1u << 3,
  kStudy = 1u << 4,
  kReport = 1u << 5,
  kDoctor = 1u << 6,
  kData = 1u << 7,
  kRuns = kTrain | kSweep | kScale | kConverge | kStudy,  ///< those that train, and may take a recipe
};

struct Settings {
  Command command = kTrain;
  Session* session = nullptr;  ///< the other processes of this run; nullptr: there are none
  train::Options train;
  study::StudyOptions study;
  std::string typed;               ///< the command as typed, for records
  std::vector<std::string> given;  ///< names of the options that recipe or command line set
  [[nodiscard]] bool is_given(std::string_view name) const {
    return std::find(given.begin(), given.end(), name) != given.end();
  }
  std::string recipe;              ///< which recipe set what, for records; "" without one
  std::vector<std::string> notes;  ///< what is worth saying before the run: defaults taken, keys not used
  bool json = false;               ///< the record alone on standard output

  struct Report {
    std::vector<std::filesystem::path> records;  ///< files, or directories whose records are all taken
    std::filesystem::path html, markdown, csv, json;
  } report;

  DoctorOptions doctor;

  struct Data {
    std::string action;           ///< "info", "verify", "pack", "manifest" or "get"
    std::string spec;             ///< get: the name of a package
    std::filesystem::path pack;   ///< what pack writes
    bool decoded = false;         ///< pack pixels
    std::filesystem::path cache;  ///< get: where to; empty: the user's cache
    std::string from;             ///< get: this folder's address instead of the publisher's
  } data;
};

}  // namespace paceline::cli
