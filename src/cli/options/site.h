#pragma once

/// Reads the site file: settings that a site needs for every user's commands, and that must never change a
/// figure.
///
///     [sbatch]                        [launch]                  [data]
///     account = "physics"             by = "srun"               imagenet = "folder:/data/imagenet"
///     setup = ["module load gcc"]     meet-within = 300
///
/// Later ones win: the host's site file, the user's, a recipe, the command line.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/options/layers.h"

namespace paceline::cli {

struct Site {
  std::vector<Assignment> given;                  ///< options of the requested command
  std::map<std::string, std::string> data;        ///< names of data sets, and their specs
  std::map<std::string, std::string> data_where;  ///< [name]: "FILE:LINE", for messages
};

/// Those that exist of /etc/paceline/site.toml and paceline/site.toml in XDG_CONFIG_HOME (or ~/.config).
[[nodiscard]] std::vector<std::filesystem::path> site_files();

/// What `files` set for `command`; of two files the later one wins.
///
/// Errors   Error(usage) with file and line: not TOML; a table or key that site files may not have, with the
///          reason, whatever the command; a value that the option refuses. Error(data): a file cannot be read
[[nodiscard]] Site read_site(const std::vector<std::filesystem::path>& files, Command command);

}  // namespace paceline::cli
