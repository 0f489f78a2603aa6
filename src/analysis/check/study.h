#pragma once

/// A table as the rules see it: which row is another's baseline, how many images a row's time is of, how well
/// its time is known. Nothing here judges.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/check/claim.h"
#include "table/table.h"

namespace paceline::analysis::rules {

using table::Column;
using table::Row;
using table::Table;

/// Lifetime  looks into the table
/// Cost      linear in the rows, apart from what says otherwise
class Study {
 public:
  explicit Study(const Table& table);

  [[nodiscard]] const Table& table() const { return table_; }
  [[nodiscard]] std::size_t size() const { return table_.rows.size(); }
  [[nodiscard]] const Row& row(std::size_t i) const { return table_.rows[i]; }

  /// The rows that row `i` may be compared with: the named baseline, else of those with the fewest workers
  /// the ones that are most like it (settings, batch, epochs). Of another device or setting only where it is
  /// named; of another program where the row's own has none. Empty for a row without workers, or with the
  /// fewest.
  [[nodiscard]] const std::vector<std::size_t>& baselines(std::size_t i) const { return baselines_[i]; }

  /// Rows with the fewest workers of all, where they differ from row `i` in device or settings: nothing that
  /// it should be compared with, but a claim may be over them.
  [[nodiscard]] const std::vector<std::size_t>& of_other_settings(std::size_t i) const {
    return of_other_settings_[i];
  }

  /// The rows of so many workers of that row's program and model.
  [[nodiscard]] const std::vector<std::size_t>& with_workers(double n, const Row& like) const;

  /// Groups of rows that agree in every column of the configuration and in all settings; names, seeds and
  /// repeats may differ.
  [[nodiscard]] const std::vector<std::vector<std::size_t>>& same_configuration() const { return groups_; }

 private:
  /// Rows with the fewest workers, and of them those of a batch.
  struct Smallest {
    double workers = 0;
    bool has_more = false;  ///< there are rows with more workers
    std::vector<std::size_t> all = {};
    std::map<double, std::vector<std::size_t>> by_local = {}, by_global = {};
  };
  using Fewest = std::map<std::string, Smallest>;

  void find_baselines();
  void add(Smallest& smallest, std::size_t i) const;
  [[nodiscard]] std::vector<std::size_t> baselines_of(std::size_t i, const Smallest& fewest) const;

  const Table& table_;
  std::vector<std::vector<std::size_t>> baselines_, of_other_settings_;
  std::vector<std::vector<std::size_t>> groups_;
  std::map<std::pair<double, std::string>, std::vector<std::size_t>> by_workers_;
};

/// What was run, without the columns in `but`: rows that give the same text ran the same.
[[nodiscard]] std::string configuration(const Row& row, const std::vector<Column>& but = {});

/// The text of these columns: rows that give the same one agree in them.
[[nodiscard]] std::string texts_of(const Row& row, std::initializer_list<Column> columns);

/// Workers; nothing where they are not said or 0.
[[nodiscard]] std::optional<double> workers(const Row& row);
/// Passes whose gradients are added up before an update, where a setting says so; else 1.
[[nodiscard]] double accumulation(const Row& row);
[[nodiscard]] std::optional<double> local_batch(const Row& row);   ///< also from the global one
[[nodiscard]] std::optional<double> global_batch(const Row& row);  ///< also from the local one
/// Images that all workers together take in `time_s`: an epoch may drop its last batch, or fill it.
[[nodiscard]] std::optional<Interval> images(const Row& row);
/// Steps in `time_s`: floor to ceiling.
[[nodiscard]] std::optional<Interval> steps(const Row& row);

/// Half of the 95 % interval of the row's time, as a part of it: of its spread where that is known, else 5 %.
[[nodiscard]] double noise(const Row& row);
inline constexpr double kUnknownNoise = 0.05;
/// The figure with the noise of the times that it was made of.
[[nodiscard]] Interval with_noise(const Interval& figure, double noise_a, double noise_b);

/// Names of the settings, the device, the program and the like in which two rows differ: "precision",
/// "device".
[[nodiscard]] std::vector<std::string> differing_settings(const Row& a, const Row& b);

}  // namespace paceline::analysis::rules
