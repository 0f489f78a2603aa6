#pragma once

/// Which algorithm computes each problem fastest on this machine: measured once, kept on disk.
///
/// A table from problem to algorithm, in a file of its own for each kind of machine and program
/// (`kernels-<hash>-<hash>.txt` in base::cache_directory(), text of kernel_table.h). Files of other builds
/// that are a month old are removed. A file that is damaged, or of another machine or program, counts as
/// empty and is measured anew.
///
/// Threads  one at a time; several processes may have the same file

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace paceline::engine {

class KernelCache {
 public:
  /// The table kept in `directory`, as the disk has it now, for `machine`: "what computes, with which
  /// libraries; this very program". A table with an algorithm that `is_known` denies counts as damaged.
  KernelCache(const std::filesystem::path& directory, std::string machine,
              std::function<bool(const std::string& algorithm)> is_known);

  /// Nothing: not measured.
  [[nodiscard]] std::optional<std::string> find(const std::string& product) const;

  struct Outcome {
    int measured = 0;    ///< problems that had to be
    double seconds = 0;  ///< that it took
    std::string
        trouble;  ///< not empty: the table could not be kept, so nothing was taken over from measuring
  };
  /// The algorithm of each of `products`.
  using Measure = std::function<KernelAlgorithms(const std::vector<std::string>& products)>;
  static constexpr std::size_t kAllAtOnce = static_cast<std::size_t>(-1);
  /// Has those of `products` measured that the table does not have, each once, and keeps the table before it
  /// is believed: another run must find the same answers. One process of a machine at a time. The table is
  /// kept, and other processes get their turn, after every `portion` problems: where a portion takes seconds,
  /// nobody waits for long, and a run that is killed leaves what it measured.
  ///
  /// Errors   what `measure` throws, but for Error(data)
  Outcome complete(const std::vector<std::string>& products, const Measure& measure,
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

}  // namespace paceline::engine
