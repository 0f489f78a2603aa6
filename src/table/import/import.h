#pragma once

/// Imports measurements of other programs as tables. What a file does not say stays unknown.

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

#include "table/table.h"

namespace paceline::table {

/// The contents of a file, unpacked if its first two bytes are those of gzip. If a gzip file is damaged or
/// truncated, the stream ends early and is_damaged() is true from then on.
///
/// Memory   two buffers of 64 KiB (zlib's and this one), however large the file is
/// Errors   Error(data): the file cannot be opened
class GzFile : public std::streambuf {
 public:
  explicit GzFile(const std::filesystem::path& path);

  /// Unpacked bytes read from the file so far.
  [[nodiscard]] std::size_t taken() const { return taken_; }
  /// Whether the gzip data read so far is truncated, invalid or has a wrong checksum.
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }

 protected:
  int_type underflow() override;

 private:
  struct Close {
    void operator()(void* file) const;
  };
  std::unique_ptr<void, Close> file_;
  std::array<char, 64 << 10> buffer_;
  std::size_t taken_ = 0;
  bool is_damaged_ = false;
};

/// All contents of a file, unpacked.
///
/// Errors   Error(data) with the file: it cannot be opened, its gzip data is damaged or truncated, or its
///          contents exceed `most_bytes`
[[nodiscard]] std::string content_of(const std::filesystem::path& path,
                                     std::size_t most_bytes = std::size_t{1} << 30);

/// Reads the whole file.
///
/// Errors   Error(data) with the file, the byte and what is wrong, or that it is larger than `most_bytes`
[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& path,
                                       std::size_t most_bytes = std::size_t{256} << 20);

/// A string without blanks at its ends, or a number as it would be printed; nothing for other types.
[[nodiscard]] std::optional<std::string> text_of(const nlohmann::json& value);
/// The same of a member, which may be missing.
[[nodiscard]] std::optional<std::string> text_at(const nlohmann::json& object, const char* key);
/// The member as a number, also if it is a string that contains one; nothing for "nan".
[[nodiscard]] std::optional<double> number_at(const nlohmann::json& object, const char* key);
/// The member, or null if there is none.
[[nodiscard]] const nlohmann::json& member(const nlohmann::json& object, const char* key);

struct Scatter {
  double median = 0;
  double sd = 0;  ///< n - 1 in the denominator; 0 for fewer than two
};
/// Requires  values are not empty
[[nodiscard]] Scatter scatter_of(std::vector<double> values);

/// What the user adds, by the name of a table's column: its value in all rows where the file gives none; for
/// CSVs of metrics, the name of the CSV's column that holds it.
using GivenFacts = std::map<std::string, std::string>;

/// One format.
struct Importer {
  std::string_view name;  ///< "nccl-tests text"
  /// Whether a file with this beginning has this format.
  bool (*is_it)(std::string_view head);
  /// Reads all files of one run. There is exactly one unless `joins_files`.
  ///
  /// Memory   formats with large files keep only their timed events, not the text
  /// Errors   Error(data) with file and position
  Table (*read)(std::span<const std::filesystem::path> files, const GivenFacts& given);
  bool joins_files = false;  ///< several files are the ranks of one run
  bool is_in_logs = false;   ///< may begin anywhere in a log, behind lines of other programs
};

/// The first 64 KiB of a file, which determine its format. A file packed by gzip is unpacked first.
///
/// Errors   Error(data) with the file: it cannot be read
[[nodiscard]] std::string begin_of(const std::filesystem::path& path);

/// All formats, in the order in which they are tried.
[[nodiscard]] std::span<const Importer> importers();
/// The format of a file, which begins with `head`; or nullptr.
///
/// Cost     reads the whole file if it begins as no format does: logs hold what they hold anywhere
[[nodiscard]] const Importer* find_importer(const std::filesystem::path& path, std::string_view head);
/// What a file is that no importer reads, and what to do instead: a sentence that follows its name and ": ".
[[nodiscard]] std::string why_not_read(std::string_view head);

/// The text of a log without what terminals and editors added: marks of the byte order, colours, ends of
/// lines of other systems. The numbers of its lines stay.
[[nodiscard]] std::string plain_log(std::string content);
/// The first 60 characters of a line of foreign text, safe to print.
[[nodiscard]] std::string shown_line(std::string_view line);

/// One table for each file, or one for all files of a format that joins them. `given` fills in only what the
/// files leave unknown. One bad file ends the import.
///
/// Errors   Error(data) naming file and position, or the known formats if the file has none of them;
///          Error(usage) if `given` names a column that tables do not have
[[nodiscard]] std::vector<Table> import_files(std::span<const std::filesystem::path> files,
                                              const GivenFacts& given);

// The formats. Each has a source file of its own in this folder.
[[nodiscard]] Importer ddp_run();
[[nodiscard]] Importer nccl_tests_text();
[[nodiscard]] Importer nccl_tests_json();
[[nodiscard]] Importer ddp_benchmark();
[[nodiscard]] Importer kineto();
[[nodiscard]] Importer horovod_timeline();
[[nodiscard]] Importer metrics_csv();
[[nodiscard]] Importer metrics_json();

// A run of a trainer under share/paceline/paceline_ddp.py, `paceline-ddp-1`: for what needs single steps.

/// Seconds of each step [steps]. What is left of step_s is the trainer's own work too: copies, loss, update.
struct DdpRank {
  int rank = 0;
  int host = 0;     ///< its number, from 0
  int samples = 0;  ///< local batch of a step; 0: not known
  std::vector<double> step_s;
  std::vector<double> data_s;           ///< until the batch was there
  std::vector<double> forward_s;        ///< without buffers_s
  std::vector<double> buffers_s;        ///< waiting for rank 0's buffers, as those of batch norm
  std::vector<double> backward_s;       ///< own work; of all batches, where several are accumulated
  std::vector<double> last_backward_s;  ///< of the batch whose gradients are reduced
  std::vector<double> exposed_s;        ///< waiting for buckets after it
  std::vector<double> late_s;  ///< waiting for a later rank, of exposed_s and buffers_s; empty: not known
  /// [buckets][steps] from the begin of the last backward: when the bucket was posted, when its sum was
  /// there.
  std::vector<std::vector<double>> ready_s, end_s;
};

struct DdpRun {
  Row row;  ///< of the table that the wrapper wrote: means over steps and ranks
  int workers = 0, hosts = 0;
  std::vector<double> steps;         ///< their numbers
  std::vector<double> bucket_bytes;  ///< in the order of posting
  std::vector<DdpRank> ranks;        ///< may be fewer than `workers`: those that gave their steps
  std::vector<std::string> notes;
};

/// Errors   Error(data) with the file and what is wrong: cut, another schema, a list of another length, a
///          number below 0
[[nodiscard]] DdpRun read_ddp_run(const std::filesystem::path& path);

// A measurement of nccl-tests, for the readers of their text and JSON.

struct NcclLine {
  std::string collective;   ///< "all_reduce"; "" if unknown
  std::string type;         ///< "float", "bfloat16"
  std::string redop, root;  ///< "sum", "0"; "" if there is none
  std::string bytes;        ///< as printed
  std::string seconds_us;   ///< as printed, in microseconds
  std::string busbw;        ///< as printed, GB/s; "" or "N/A" if there is none
  std::string wrong;        ///< wrong elements; "N/A" if not checked
  bool in_place = false;
  int ranks = 0, hosts = 0;  ///< 0: unknown
};

/// Errors   Error(usage): the end of a sentence about an invalid value
[[nodiscard]] Row row_of(const NcclLine& line);

/// The row of the average busbw that a test prints.
[[nodiscard]] Row row_of_average(int workers, const std::string& busbw);

/// Bytes of an element of one of NCCL's types; 0 for other words.
[[nodiscard]] int element_bytes(std::string_view type);

}  // namespace paceline::table
