#pragma once

/// Reads and joins the layers of settings: those of a recipe, a site file and the command line.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options/options.h"

namespace paceline::cli {

/// An option with its text, and its origin, with which errors about it begin.
struct Assignment {
  const Option* option = nullptr;
  std::string text;
  std::string where;  ///< "--lr", or "recipes/mnist.toml:7: lr"
};

/// What a recipe sets. Keys that only other commands accept are left out and listed in `unused`, so that one
/// recipe serves train and scale.
struct Recipe {
  std::vector<Assignment> given;  ///< in the order of the file
  std::vector<Assignment> quick;  ///< of its table [quick]: with --quick these override `given`
  bool has_quick = false;
  std::string summary;  ///< "recipes/mnist.toml sets model, data"
  std::string unused;   ///< a sentence, or ""
};

/// Reads and checks a whole recipe, including its table [quick], so that a mistake in it is found with the
/// first run and not with the first --quick.
///
/// Errors   Error(usage) with file and line: not TOML, an unknown key (with the nearest name), a value of
///          another type or out of its range; Error(data) when the file cannot be read
[[nodiscard]] Recipe read_recipe(const std::filesystem::path& path, Command command);

/// Checks one layer by itself: values, and contradictions between them.
///
/// Errors   as merge_options()
void check_layer(Command command, const std::vector<Assignment>& layer);

/// Joins the layers (later ones win), sets all options in the table's order, and checks rules between options
/// that depend on neither data nor machine.
///
/// Errors   Error(usage): one sentence that begins with the origin of the text
[[nodiscard]] Settings merge_options(Command command, const std::vector<std::vector<Assignment>>& layers);

}  // namespace paceline::cli
