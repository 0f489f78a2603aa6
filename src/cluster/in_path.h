#pragma once

/// Finds programs in PATH, as a shell does.

#include <string>

namespace paceline::cluster {

/// The file that a shell would start as `name`, or "".
[[nodiscard]] std::string in_path(const std::string& name);

/// Whether Slurm's srun offers PMIx, which joins MPI processes, by its answer to --mpi=list.
///
/// Cost     starts srun once
[[nodiscard]] bool srun_has_pmix();

}  // namespace paceline::cluster
