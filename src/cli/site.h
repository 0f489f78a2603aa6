#pragma once

/// The site file: what a place needs of every user's commands, and what must never change a figure.
///
///     [sbatch]                        [launch]                  [data]
///     account = "physics"             by = "srun"               imagenet = "folder:/data/imagenet"
///     setup = ["module load gcc"]     meet-within = 300
///
/// Later ones win: the site file of the host, that of the user, a recipe, the command line.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/layers.h"

namespace paceline::cli {

struct Site {
  std::vector<Assignment> given;                  ///< options of the command that was asked about
  std::map<std::string, std::string> data;        ///< a name that stands for a data set, and its spec
  std::map<std::string, std::string> data_where;  ///< [name]: "FILE:LINE", for sentences
};

/// /etc/paceline/site.toml, then paceline/site.toml in XDG_CONFIG_HOME (or ~/.config): those that are there.
[[nodiscard]] std::vector<std::filesystem::path> site_files();

/// What `files` give to `command`; of two files the later one wins.
///
/// Errors   Error(usage) with file and line: not TOML; a table or key that no site file has, with the reason,
///          whatever the command; a value that the option refuses. Error(data): a file cannot be read
[[nodiscard]] Site read_site(const std::vector<std::filesystem::path>& files, Command command);

}  // namespace paceline::cli
