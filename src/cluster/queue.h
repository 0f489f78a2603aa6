#pragma once

/// Puts Slurm's information about a waiting job into words. Pure functions.

#include <string>
#include <string_view>
#include <vector>

namespace paceline::cluster {

/// The command line that asks Slurm for state, reason and expected start of `job`.
[[nodiscard]] std::vector<std::string> queue_line(const std::string& job);

/// Whether Slurm has considered the job since it was submitted; before, it has neither reason nor start.
[[nodiscard]] bool is_considered(std::string_view answer);

/// The answer to queue_line() as one sentence: "queue: PENDING, Priority (jobs before it come first);
/// expected start 2026-11-25T08:00:00". "" for an invalid answer, as for a job that has left the queue.
[[nodiscard]] std::string queue_sentence(std::string_view answer);

}  // namespace paceline::cluster
