#pragma once

/// What Slurm says about a job that waits, in words. Pure functions.

#include <string>
#include <string_view>
#include <vector>

namespace paceline::cli {

/// The words of the line that asks Slurm for state, reason and expected start of `job`, without asking who is
/// before it.
[[nodiscard]] std::vector<std::string> queue_line(const std::string& job);

/// Whether Slurm has looked at the job since it was submitted: before that it has neither reason nor start.
[[nodiscard]] bool is_considered(std::string_view answer);

/// The answer to queue_line() as one sentence: "queue: PENDING, Priority (jobs before it come first);
/// expected start 2026-11-25T08:00:00". "" for an answer that is none, such as of a job that has left the
/// queue.
[[nodiscard]] std::string queue_sentence(std::string_view answer);

}  // namespace paceline::cli
