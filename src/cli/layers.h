#pragma once

/// The layers that settings are made of: what a recipe, a site file or the command line gives, and how they
/// are joined.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options.h"

namespace paceline::cli {

/// One option given its text, and where: what an error about it begins with.
struct Assignment {
  const Option* option = nullptr;
  std::string text;
  std::string where;  ///< "--lr", or "recipes/mnist.toml:7: lr"
};

/// What a recipe gives. A key that only other commands take is left out and named in `unused`: one recipe
/// serves train and scale.
struct Recipe {
  std::vector<Assignment> given;  ///< in the order of the file
  std::vector<Assignment> quick;  ///< of its table [quick]: replaces `given` with --quick
  bool has_quick = false;
  std::string summary;  ///< "recipes/mnist.toml sets model, data"
  std::string unused;   ///< a sentence, or ""
};

/// Reads and checks all of a recipe, its table [quick] too when nobody asks for it: a mistake in it is found
/// with the first run, not with the first --quick.
///
/// Errors   Error(usage) with file and line: not TOML, an unknown key (with the nearest name), a value of
///          another type or out of its range; Error(data) when the file cannot be read
[[nodiscard]] Recipe read_recipe(const std::filesystem::path& path, Command command);

/// Refuses what is wrong with one layer for itself, whatever the others give: its values, and two of them
/// that contradict each other. Errors: as merge_options().
void check_layer(Command command, const std::vector<Assignment>& layer);

/// Joins the layers, later ones winning, sets everything in the table's order, and checks what must hold
/// between options whatever the data and the machine.
///
/// Errors   Error(usage): one sentence that begins with where the text stood
[[nodiscard]] Settings merge_options(Command command, const std::vector<std::vector<Assignment>>& layers);

}  // namespace paceline::cli
