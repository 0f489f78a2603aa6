#pragma once

/// Which algorithm computes each convolution fastest on this machine: measured once, kept on disk.
///
/// A table from (shape, direction) to algorithm, in a file of its own for each kind of machine
/// and program (`kernels-<hash>-<hash>.txt` in base::cache_directory()): processor, instruction sets, oneDNN,
/// this very program. Files of other builds that are a month old are removed.
/// A file that is damaged, or of another machine or program, counts as empty and is measured anew.
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
  /// The table kept in `directory`, for the machine that `machine` describes.
  TuningCache(const std::filesystem::path& directory, std::string machine);

  /// As the disk has it now, for this machine and program.
  [[nodiscard]] static std::shared_ptr<TuningCache> here();

  /// Null: not measured.
  [[nodiscard]] const ConvAlgorithm* find(const ConvProblem& problem) const;

  struct Outcome {
    int measured = 0;    ///< problems that had to be
    double seconds = 0;  ///< that it took
    std::string
        trouble;  ///< not empty: the table could not be kept, so nothing was taken over from measuring
  };
  using Measure = const ConvAlgorithm* (*)(const ConvProblem& problem);
  /// Measures the problems that the table does not have, side by side on all cores (as crowded as training
  /// will be), and keeps the table before it is believed: another run must find the same answers. One process
  /// of a machine at a time. `measure` is called from several threads, each in a OneThread.
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
