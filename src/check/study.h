#pragma once

/// Prepares a table for the rules of `check`: baselines of rows, images of a row's time, precision of its
/// time. It judges nothing.

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "table/table.h"

namespace paceline::check {

// Decides whether a printed number follows from others, and if not, which known mistake explains it.
//
// A claim c with half a unit h of its last digit follows from an interval if [c - t, c + t] meets it, with t
// = max(2h, 0.5 %), since people truncate, and round twice. A wrong form explains c at t = max(2h, 2 %), if
// the form and c are more than 3 % away from every right one. Forms vote over a column, since one mistake is
// usually made in all cells.

struct Interval {
  double low = 0, high = 0;
  [[nodiscard]] double middle() const { return (low + high) / 2; }
};

/// All values that could have been printed like this, rounded or truncated: half a unit below to a whole one
/// above.
[[nodiscard]] Interval interval_of(const table::Number& number);
[[nodiscard]] Interval exactly_one(double value);
/// The range of possible values, combining opposite ends. Requires positive numbers.
[[nodiscard]] Interval times(const Interval& a, const Interval& b);
[[nodiscard]] Interval divided(const Interval& a, const Interval& b);
[[nodiscard]] Interval times(const Interval& a, double factor);

inline constexpr double kFollows = 0.005;
inline constexpr double kExplains = 0.02;
inline constexpr double kApart = 0.03;

[[nodiscard]] bool meets(const table::Number& claim, const Interval& interval, double tolerance);

/// A known wrong way to compute a number.
struct WrongForm {
  std::string id;  ///< the same in all rows, for the vote: "times N"
  Interval value;
  std::string sentence;  ///< "3.20 is 4 x 0.80: ..."
  /// How close the claim must be. Of forms that are two or three mistakes at once there are many, so that a
  /// loose one would be matched by chance.
  double tolerance = kExplains;
};

struct Claim {
  std::size_t row = 0;  ///< of the table
  table::Number printed;
  std::vector<Interval> right;  ///< several if the source does not say which is meant: each of them is right
  std::vector<WrongForm> wrong;
};

/// Whether one of the right forms gives the printed number. Wrong forms are not needed.
[[nodiscard]] bool follows(const Claim& claim);

struct Judgement {
  bool follows = true;
  const WrongForm* form = nullptr;  ///< that explains a number that does not follow; null: none does
  [[nodiscard]] std::string cause() const { return form != nullptr ? form->id : "unexplained"; }
};
/// One per claim; forms point into `claims`.
[[nodiscard]] std::vector<Judgement> judge(const std::vector<Claim>& claims);

using table::Column;
using table::has_any;
using table::Row;
using table::Table;

/// Lifetime  refers to the table
/// Cost      linear in the rows, unless stated otherwise
class Study {
 public:
  explicit Study(const Table& table);

  [[nodiscard]] const Table& table() const { return table_; }
  [[nodiscard]] std::size_t size() const { return table_.rows.size(); }
  [[nodiscard]] const Row& row(std::size_t i) const { return table_.rows[i]; }
  /// Each row with its number: `for (const auto& [i, row] : study.rows())`.
  [[nodiscard]] auto rows() const {
    return std::views::iota(std::size_t{0}, size()) | std::views::transform([this](std::size_t i) {
             return std::pair<std::size_t, const Row&>(i, row(i));
           });
  }

  /// The rows with which row `i` may be compared: the named baseline, else the most similar ones (settings,
  /// batch, epochs) of those with the fewest workers. A row of another device or setting only if it is named;
  /// one of another program only if the row's own has none. Empty for a row without workers, or with the
  /// fewest.
  [[nodiscard]] const std::vector<std::size_t>& baselines(std::size_t i) const { return baselines_[i]; }

  /// Rows with the fewest workers of all that differ from row `i` in device or settings. They are no valid
  /// baseline, but a claim may be relative to them.
  [[nodiscard]] const std::vector<std::size_t>& of_other_settings(std::size_t i) const {
    return of_other_settings_[i];
  }

  /// The rows with `n` workers of the program and model of `like`.
  [[nodiscard]] const std::vector<std::size_t>& with_workers(double n, const Row& like) const;

  /// Groups of rows that agree in every configuration column and in all settings; names, seeds and repeats
  /// may differ.
  [[nodiscard]] const std::vector<std::vector<std::size_t>>& same_configuration() const { return groups_; }

 private:
  /// Rows with the fewest workers: all, and by batch.
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

/// What was run, without the columns in `but`, as text; rows with the same text ran the same.
[[nodiscard]] std::string configuration(const Row& row, const std::vector<Column>& but = {});

/// The values of these columns as text, for comparing rows.
[[nodiscard]] std::string texts_of(const Row& row, std::initializer_list<Column> columns);

/// The groups of several rows with one key, in the order of the keys; in each the rows in the order of
/// `size`. Rows with the key "" are in none.
template <typename Key, typename Size>
[[nodiscard]] std::vector<std::vector<std::size_t>> sorted_groups(const Study& study, const Key& key,
                                                                  const Size& size) {
  std::map<std::string, std::vector<std::size_t>> by_key;
  for (const auto& [i, row] : study.rows()) by_key[key(row)].push_back(i);
  by_key.erase("");
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [text, rows] : by_key) {
    std::ranges::stable_sort(rows, {}, [&](std::size_t i) { return size(study.row(i)); });
    if (rows.size() > 1) groups.push_back(std::move(rows));
  }
  return groups;
}

/// Whether the row knows one of these columns.
[[nodiscard]] bool knows_any(const Row& row, std::initializer_list<Column> columns);

/// Workers; nothing if unknown or 0.
[[nodiscard]] std::optional<double> workers(const Row& row);
/// Forward and backward passes per update (gradient accumulation), if a setting says so; else 1.
[[nodiscard]] double accumulation(const Row& row);
[[nodiscard]] std::optional<double> local_batch(const Row& row);   ///< may be derived from the global one
[[nodiscard]] std::optional<double> global_batch(const Row& row);  ///< may be derived from the local one
/// Images that all workers together process in `time_s`; an epoch may drop its last batch, or fill it up.
[[nodiscard]] std::optional<Interval> images(const Row& row);
/// Steps in `time_s`, from floor to ceiling.
[[nodiscard]] std::optional<Interval> steps(const Row& row);

/// The claimed speedup, else the claimed efficiency.
[[nodiscard]] std::optional<table::Number> claimed_ratio(const Row& row);

/// Half the 95 % interval of the row's time, relative to it: from its spread if that is known, else 5 %.
[[nodiscard]] double noise(const Row& row);
inline constexpr double kUnknownNoise = 0.05;
/// A figure widened by the noise of the two times from which it was computed.
[[nodiscard]] Interval with_noise(const Interval& figure, double noise_a, double noise_b);

/// Names of settings, device, program and the like in which two rows differ: "precision", "device".
[[nodiscard]] std::vector<std::string> differing_settings(const Row& a, const Row& b);

}  // namespace paceline::check
