#pragma once

/// KernelCache keeps on disk which algorithm computes each problem fastest on this machine, so that it is
/// measured once. A problem is a convolution or dense layer in one direction.
///
/// Each kind of machine and each build of the program has a file of its own (`kernels-<hash>-<hash>.txt`;
/// see below for the text). A file that is damaged, or belongs to another machine or build, counts
/// as empty. Files of other builds are removed when they are a month old.
///
/// Threads  one at a time; several processes may use the same file

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace paceline::engine {

// The text of a kernel cache file.
//
//     paceline kernels, format 1
//     MACHINE
//     ALGORITHM PROBLEM       a line for each problem; an algorithm's name has no spaces
//     end COUNT               the last line; a file without it is incomplete

struct KernelTable {
  std::string machine;  ///< one line
  KernelAlgorithms algorithms;
};

/// Empty if `text` is not a complete table.
[[nodiscard]] std::optional<KernelTable> kernel_table_from(std::string_view text);
/// Requires  no algorithm's name is empty, is "end" or has a space
[[nodiscard]] std::string as_text(const KernelTable& table);

/// Whether `text` begins like a table, complete or not.
[[nodiscard]] bool is_kernel_table(std::string_view text);

class KernelCache {
 public:
  /// Reads the file for `machine` in `directory`. `machine` names the hardware and libraries, then after the
  /// last ';' this build of the program. A file with an algorithm for which `is_known` returns false counts
  /// as damaged.
  KernelCache(const std::filesystem::path& directory, std::string machine,
              std::function<bool(const std::string& algorithm)> is_known);

  /// The fastest algorithm; empty if the problem was not measured.
  [[nodiscard]] std::optional<std::string> find(const std::string& problem) const;

  struct Outcome {
    int measured = 0;      ///< problems that were not in the file
    std::size_t left = 0;  ///< problems that `measure` did not measure
    double seconds = 0;    ///< duration of complete(), waiting for other processes included
    std::string trouble;   ///< Not empty: why the table could not be written. Measurements are then not used.
  };
  /// Measures, and returns the fastest algorithm for each of `problems`; for fewer if it can measure no more
  /// now.
  using Measure = std::function<KernelAlgorithms(const std::vector<std::string>& problems)>;
  static constexpr std::size_t kAllAtOnce = static_cast<std::size_t>(-1);
  /// Measures those of `problems` that the table lacks, each once. The table is written before find() returns
  /// new entries, so that another run gets the same answers. One process of a machine measures at a time.
  /// After every `portion` problems the table is written and other processes get their turn; a killed run
  /// thus leaves what it has measured.
  ///
  /// Errors   those of `measure`, except Error(data), which becomes Outcome::trouble
  Outcome complete(const std::vector<std::string>& problems, const Measure& measure,
                   std::size_t portion = kAllAtOnce);

  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  [[nodiscard]] KernelAlgorithms read() const;
  void write(const KernelAlgorithms& table) const;

  const std::filesystem::path file_;
  const std::string machine_;
  const std::function<bool(const std::string&)> is_known_;
  KernelAlgorithms table_;
};

// choose_kernels() chooses an algorithm for each problem of a run: from an earlier run, from measuring on
// this machine, or from the defaults of the engine, which passes its problems, its algorithms and a way to
// measure them.

/// What an engine says of its problems.
struct KernelProblems {
  std::string chosen_by;      ///< one word for the defaults: a table's name, "rules"
  KernelAlgorithms defaults;  ///< for every problem of the graph
  /// Why the algorithm cannot compute the problem here, as the end of a sentence that begins with the
  /// algorithm's name ("is for convolutions"). Empty: it can.
  std::function<std::optional<std::string>(const std::string& problem, const std::string& algorithm)> refusal;
};

/// How an engine measures. Called only if the request asks for measuring.
struct KernelMeasuring {
  std::function<KernelCache()> open_cache;
  KernelCache::Measure measure;
  /// Problems measured before the cache is written and other processes get their turn.
  std::size_t portion = KernelCache::kAllAtOnce;
};

/// Returns an algorithm for every problem of `problems.defaults`, who chose it, and a note for the user.
///
/// Errors   Error(usage) if the request insists on an algorithm that is refused; errors of `measuring`
[[nodiscard]] PreparedKernels choose_kernels(const KernelProblems& problems, const KernelRequest& request,
                                             const KernelMeasuring& measuring);

}  // namespace paceline::engine
