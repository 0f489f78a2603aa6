#pragma once

/// Runs the real `paceline` as a user does, and tells what came of it.

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace paceline::cli {

struct Outcome {
  int code = -1;  ///< exit code, or 128 + the signal that ended it
  std::string out, err;
};

struct RunConditions {
  std::filesystem::path directory;          ///< where it runs
  std::optional<std::size_t> largest_file;  ///< ulimit -f: writes beyond fail with EFBIG, as on a full disk
  std::string out_path;                     ///< standard output goes there: "/dev/full"
  std::string cache;                        ///< its PACELINE_CACHE; "": that of the test
  int longest_minutes = 2;                  ///< it is ended by force after so many
  int refused_thread = 0;                   ///< of its threads this one (from 1) and all after it; 0: none
  std::vector<std::pair<std::string, std::string>> variables;  ///< of its environment, beside the test's
};

/// A run under way.
class Program {
 public:
  Program(const std::vector<std::string>& words, const RunConditions& circumstances);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void signal(int number) const;
  /// Standard output as far as wait_for() has read it.
  [[nodiscard]] const std::string& said() const { return outcome_.out; }
  /// Waits until standard output or error holds `text`; false when the program ended or so many minutes
  /// passed before.
  bool wait_for(const std::string& text, int minutes = 1);
  /// Waits for the end; ends it by force when it takes too long.
  Outcome finish();

 private:
  void read_some(int milliseconds);
  void reap();

  pid_t process_ = -1;
  int longest_minutes_ = 2;
  int pipes_[2] = {-1, -1};
  std::optional<int> status_;
  Outcome outcome_;
};

Outcome run_program(const std::vector<std::string>& words, const RunConditions& circumstances = {});

/// Runs `words` as the two processes of one run on this host, joined by gloo, as torchrun would start them;
/// `of_rank` gives each its conditions. Returns the first one's outcome.
Outcome run_two_processes(const std::vector<std::string>& words,
                          const std::function<RunConditions(int rank)>& of_rank);

/// A port of this host that nobody listens on now.
int free_port();

/// A folder of its own, removed with all that is in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::string write(const std::string& name, const std::string& bytes) const;  ///< returns the file's path

 private:
  std::filesystem::path path_;
};

}  // namespace paceline::cli
