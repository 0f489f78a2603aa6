#pragma once

/// The checkpoints of a directory: their names, and the links to the last and the best of them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace paceline::train {

/// DIR/checkpoint-00000812.safetensors, by updates done.
[[nodiscard]] std::filesystem::path checkpoint_path(const std::filesystem::path& directory,
                                                    std::int64_t update);

/// DIR/best-00000812.safetensors: a checkpoint too, of the best epoch on validation.
[[nodiscard]] std::filesystem::path best_checkpoint_path(const std::filesystem::path& directory,
                                                         std::int64_t update);

/// The updates in a checkpoint's file name; nothing for other files.
[[nodiscard]] std::optional<std::int64_t> update_of(const std::filesystem::path& path);

/// All checkpoints of a directory, the newest (most updates) first; none where there is no directory.
[[nodiscard]] std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& directory);

/// The links in a directory with checkpoints.
inline constexpr const char* kLatestLink = "latest.safetensors";
inline constexpr const char* kBestLink = "best.safetensors";

/// Lets DIR/`name` lead to `target`, a file of the same directory, from now on. A link that was there before
/// changes in one step. On a file system without links there is none.
void link_to(const std::filesystem::path& target, const char* name);

/// Renames a damaged file to DIR/damaged-NAME, so that nobody takes it for a good one; returns the new path.
/// Where it cannot be renamed it stays, and so does its path.
std::filesystem::path set_aside_damaged(const std::filesystem::path& file);

}  // namespace paceline::train
