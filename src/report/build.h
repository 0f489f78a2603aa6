#pragma once

/// Builds a report from records: every conclusion that they allow, and where they allow none, the reason.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare_runs.h"
#include "analysis/predict/score.h"
#include "check/check.h"
#include "measure/record.h"
#include "report/document.h"
#include "report/expect.h"
#include "table/table.h"

namespace paceline::report {

// Removes from records what should not be shown to others: home directories, and paths of one machine. The
// records themselves keep them.

/// `text` with home directories replaced by "~": `home` (the current user's), /root, and directories in /home
/// and /Users. A shell still understands the paths.
[[nodiscard]] std::string without_homes(std::string_view text, std::string_view home);

/// The same for sentences, where every other absolute path is also reduced to its last part,
/// "…/kernels-1.txt". Paths that every Linux has (/proc, /sys, /dev, /etc, /usr) stay.
[[nodiscard]] std::string without_paths(std::string_view text, std::string_view home);

/// Copies for a report: no paths in sentences, no home directories in commands. Equal settings stay equal,
/// different ones different.
///
/// Cost     a copy of all records
[[nodiscard]] std::vector<measure::Record> shareable(std::span<const measure::Record> records,
                                                     std::string_view home);

/// $HOME; "" if it is not set.
[[nodiscard]] std::string home_here();

/// A section per step, for each model and data set: the cells among which the operating point was chosen and
/// those left out, batch, workers, limit, network, accuracy. It says what was not measured.
///
/// Requires  records is not empty
[[nodiscard]] Document explain(std::span<const measure::Record> records);

// The report of a comparison of two sets of records, A and B: headline, settings that differ, the ratio of
// every pair and its word, accuracies, and cells that only one side has.

struct CompareOptions {
  std::string a, b;     ///< their names in the report: "study-20260131"
  std::string b_path;   ///< as a command names it
  std::string command;  ///< that makes this report; empty: unknown
  double noise = analysis::kNoise;
  /// Sentences about the input that are not in the records; shown at the top.
  std::vector<std::string> remarks = {};
};

/// Errors   none: what cannot be compared is listed with the reason
[[nodiscard]] Document build_comparison(const analysis::RunComparison& comparison,
                                        const CompareOptions& options);

/// "B is 12 % faster at the best cell of A, scale b 32, N 2 [8, 16]". The terminal shows it too.
[[nodiscard]] std::string headline(const analysis::RunComparison& comparison, double noise);

struct CheckText {
  std::size_t width = 0;           ///< columns of the terminal; 0: lines are not broken
  std::size_t most_lines = 25;     ///< the rest is counted, and --why shows it
  bool shows_all = false;          ///< every finding and every unchecked rule
  std::vector<std::string> notes;  ///< how the tables were read
};

/// The findings, how the tables were read, which rules that find errors lack one column, and the counts. "0
/// errors" is said only where something was compared.
[[nodiscard]] std::vector<std::string> check_lines(const check::Result& result, const CheckText& options);

/// {"findings": [{"rule", "severity", "rows": [name], "printed", "corrected": {"value", "low", "high"},
/// "sentence", "file", "line", "also": [{"rows", "printed", "corrected", "line"}]}], "not_checked": [{"rule",
/// "missing"}], "compared"}. `also`: the same mistake in other rows. `printed` is a text with its original
/// digits; it and `corrected` are null if no single figure is meant.
[[nodiscard]] std::string check_json(const check::Result& result);

/// SARIF 2.1.0: one run, the rules with findings, a result for each finding.
[[nodiscard]] std::string check_sarif(const check::Result& result);

/// A text for each training with epochs, named by its record's id, in the lines of MLPerf's logs (":::MLLOG
/// {...}"): set-up, epochs, evaluations. Times are sums of recorded seconds. It says that it is no
/// submission.
[[nodiscard]] std::vector<NamedText> mllog_files(std::span<const measure::Record> records);

struct BuildOptions {
  std::string title;    ///< empty: made from model and data
  std::string command;  ///< that makes this report; empty: unknown
  /// Sentences about the input that are not in the records; shown at the top.
  std::vector<std::string> remarks = {};
  std::vector<Bound> bounds = {};  ///< for the report's expectations
  /// Of the records' --emulate-link; without it nothing is predicted from such records.
  std::optional<analysis::AddedLink> emulated = {};
  double margin = analysis::kMargin;                    ///< of claims that an accuracy is no worse
  std::vector<analysis::ScoredPrediction> scored = {};  ///< predictions that were made before
};

/// A report of any mix of records: one training, a sweep, scaling cells, a study, or all of them. Sections
/// without records are left out; the answers say which questions were not measured.
///
/// Errors   none: records that cannot be compared, failed or were skipped are named in the report
[[nodiscard]] Document build(std::span<const measure::Record> records, const BuildOptions& options = {});

/// The same with tables of other programs: what is right and wrong in them, and where their time goes, as far
/// as they say. Ratios never mix their rows with records.
///
/// Requires  at least one table
[[nodiscard]] Document build_with_tables(std::span<const measure::Record> records,
                                         std::span<const table::Table> tables,
                                         const BuildOptions& options = {});

}  // namespace paceline::report
