#pragma once

/// The commands, one file each. Each returns the exit code: 0, or that of the signal that stopped it.
/// Failures are thrown as Error, which main prints.

#include "cli/options/settings.h"

namespace paceline::cli {

int train_command(const Settings& settings);
int sweep_command(const Settings& settings);
int scale_command(const Settings& settings);
int converge_command(const Settings& settings);
int search_command(const Settings& settings);
int evaluate_command(const Settings& settings);
int study_command(const Settings& settings);
int report_command(const Settings& settings);
int explain_command(const Settings& settings);
int compare_command(const Settings& settings);
int verify_command(const Settings& settings);
int check_command(const Settings& settings);
int import_command(const Settings& settings);
int doctor_command(const Settings& settings);
int init_command(const Settings& settings);
int data_command(const Settings& settings);
int comm_command(const Settings& settings);
int launch_command(const Settings& settings);
int sbatch_command(const Settings& settings);
int runs_command(const Settings& settings);
int serve_command(const Settings& settings);
int completion_command(const Settings& settings);
int manual_command(const Settings& settings);

}  // namespace paceline::cli
