#pragma once

/// The set-up of a run: everything in its record that can change a figure, as one ordered list of texts.
///
/// Records are repeats of one cell only where nothing of this list differs (cells.h). Scaling groups, labels,
/// columns and "differs in" read the same list, so what keeps two cells apart can always be named.
///
/// Every field of a record either stands in the list or is left out with a reason (field_decisions); a test
/// walks over the fields of measure/record_fields.h and fails for one that is neither. Left out are
///   - what makes a repeat a repeat: its id and number, when and by which command it was made, the seed, the
///     length of the measured window, what the machine had free or busy just then;
///   - what was measured, and sentences about it;
///   - the numbers of the cores that workers were pinned to: which cores are free is chance. How many there
///     were, and of how many hosts, is in the list;
///   - the bucket size that `--bucket auto` came to. It follows a latency that each run measures anew, so
///     noise moves it; the cell is of the rule "auto", and what the rule's choices do to the time belongs
///     into its interval. The precision that "auto" came to is no such choice (the processor decides it): the
///     list has the one that was used, and not the word.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "measure/record.h"

namespace paceline::analysis {

/// What an entry is about.
enum class SetupKind : std::uint8_t {
  part,          ///< which question the run belongs to: kind, scaling, variant
  size,          ///< workers and batches, and what follows from them and the settings
  joined,        ///< how workers are joined and where they run; one worker alone is joined with nobody
  cores,         ///< what a worker computes and loads with
  machine,       ///< device, processor, build, precision
  subject,       ///< model and data
  setting,       ///< an option
  rest,          ///< unit of the window, what was emulated, what resumes and restarts did otherwise
  circumstance,  ///< see circumstances(); and what a version makes of the same model and data
};

struct SetupEntry {
  std::string name;  ///< "communicator"; of a setting its key, "loader-threads"
  std::string text;  ///< never empty: what is absent or not known has no entry
  SetupKind kind;
  friend bool operator==(const SetupEntry&, const SetupEntry&) = default;
};

/// In the order in which differences are looked for: the first entry that tells two cells apart names them.
using Setup = std::vector<SetupEntry>;
[[nodiscard]] Setup setup(const measure::Record& record);

/// The text of the first entry called `name` that is no setting; empty where there is none.
[[nodiscard]] std::string_view text_of(const Setup& setup, std::string_view name);
/// Whether two set-ups differ in an entry of `kind`.
[[nodiscard]] bool differ_in(const Setup& a, const Setup& b, SetupKind kind);

/// Where a field of a record went. A decision for "epochs[]" covers all fields of an epoch.
struct FieldDecision {
  std::string_view field;  ///< "communication.algorithm", "ranks[].host", "settings"
  std::string_view entry;  ///< the entry that it is in; empty where it is left out
  std::string_view why;    ///< of one that is left out
};
[[nodiscard]] std::vector<FieldDecision> field_decisions();

/// By name; what is not known is not there.
using Circumstances = std::map<std::string, std::string>;

/// What repeats must share although a ratio across it is only remarked: version, libraries, host, system and
/// compiler.
[[nodiscard]] Circumstances circumstances(const measure::Record& record);

/// What resumes did otherwise than the run before them, for a key or a label; the settings of the record are
/// those of its last part.
[[nodiscard]] std::string changes_at_resumes(const measure::Record& record);

/// Different cores that the workers' threads could use: of all ranks and hosts where the workers were pinned,
/// else by what process 0 could use on its host.
[[nodiscard]] int cores_used(const measure::Record& record);

/// Processes that shared the workers, and hosts that they ran on. 1 where the record names none.
[[nodiscard]] std::int64_t processes(const measure::Record& record);
[[nodiscard]] int nodes(const measure::Record& record);

/// Whether the record is of one worker that has nobody to talk to: it is the baseline of all ways of joining.
[[nodiscard]] bool is_alone(const measure::Record& record);

/// Whether a setting says how workers are joined ("parallel", "placement", "shared-memory"): it means nothing
/// to a worker alone.
[[nodiscard]] bool is_setting_of_joining(std::string_view key);

/// How the workers are joined, in words: "threads of one process", "2 processes over shared memory",
/// "4 processes on 2 nodes". Empty for a worker alone, and for a record of nothing that was run.
[[nodiscard]] std::string joined_as(const measure::Record& record);

}  // namespace paceline::analysis
