#pragma once

/// The fastest algorithm for each convolution on this machine: measured once, then kept on disk.
///
/// The table maps a ConvProblem to an algorithm. Each kind of machine (processor, instruction sets, oneDNN)
/// and each build of this program has a file of its own, `kernels-<hash>-<hash>.txt` in
/// base::cache_directory(). Files of other builds are removed after a month. A file that is damaged, or of
/// another machine or build, counts as empty; its problems are measured again.
///
/// Threads  all functions from any thread

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/cpu/conv/algorithms.h"

namespace paceline::engine::cpu {

class TuningCache {
 public:
  /// The table in `directory` for the machine and build that `machine` describes.
  TuningCache(const std::filesystem::path& directory, std::string machine);

  /// The table of this machine and build, as it is on disk now.
  [[nodiscard]] static std::shared_ptr<TuningCache> here();

  /// Null if the problem was not measured.
  [[nodiscard]] const ConvAlgorithm* find(const ConvProblem& problem) const;

  struct Outcome {
    int measured = 0;    ///< number of problems that this call measured
    double seconds = 0;  ///< how long the call took
    std::string
        trouble;  ///< not empty: the table could not be kept, so nothing was taken over from measuring
  };
  using Measure = const ConvAlgorithm* (*)(const ConvProblem& problem);
  /// Measures the problems that the table lacks, in parallel on all cores (as busy as they are in training).
  /// Uses the results only after writing them to disk, so that the next run finds the same ones. Only one
  /// process of a machine measures at a time. `measure` is called from several threads, each in a OneThread.
  Outcome complete(const std::vector<ConvProblem>& problems, Measure measure);

  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  using AlgorithmByKey = std::map<std::string, const ConvAlgorithm*>;
  [[nodiscard]] AlgorithmByKey read() const;
  void write(const AlgorithmByKey& table) const;

  const std::filesystem::path file_;
  const std::string machine_;
  mutable std::mutex mutex_;
  AlgorithmByKey table_;
};

}  // namespace paceline::engine::cpu
