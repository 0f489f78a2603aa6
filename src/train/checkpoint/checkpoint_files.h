#pragma once

/// The file names of a directory's checkpoints, and the links to the last and the best one.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace paceline::train {

/// DIR/checkpoint-00000812.safetensors, by updates done.
[[nodiscard]] std::filesystem::path checkpoint_path(const std::filesystem::path& directory,
                                                    std::int64_t update);

/// DIR/best-00000812.safetensors: the checkpoint of the best epoch on validation.
[[nodiscard]] std::filesystem::path best_checkpoint_path(const std::filesystem::path& directory,
                                                         std::int64_t update);

/// The number of updates in a checkpoint's file name; nothing for other files.
[[nodiscard]] std::optional<std::int64_t> update_of(const std::filesystem::path& path);

/// All checkpoints of a directory, newest (most updates) first; empty if there is no directory.
[[nodiscard]] std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& directory);

/// Names of links in a directory with checkpoints.
inline constexpr const char* kLatestLink = "latest.safetensors";
inline constexpr const char* kBestLink = "best.safetensors";

/// Makes the link DIR/`name` point to `target`, a file of the same directory. An existing link is replaced
/// atomically. Does nothing on a file system without links.
void link_to(const std::filesystem::path& target, const char* name);

/// Renames a damaged file to DIR/damaged-NAME, so that it is not used again; returns the new path, or the old
/// one if it cannot be renamed.
std::filesystem::path set_aside_damaged(const std::filesystem::path& file);

}  // namespace paceline::train
