#pragma once

/// What a checkpoint says of itself: its format, its checksum, and the texts of its metadata.

#include <cstdint>
#include <filesystem>
#include <string>

#include "train/loss_guard.h"
#include "train/safetensors.h"
#include "train/validation_watch.h"

namespace paceline::train {

/// The `format` of what this version writes: with a checksum. Of versions before: without.
inline constexpr const char* kCheckpointFormat = "paceline-checkpoint-2";
inline constexpr const char* kFormatWithoutSum = "paceline-checkpoint-1";

/// What the names of Lookahead's slow weights begin with.
inline constexpr const char* kSlowPrefix = "lookahead.";

/// Opens a checkpoint for a look at its header: the bytes of its arrays may be damaged.
///
/// Cost     the header only
/// Errors   Error(data): it cannot be read, is no checkpoint, or its header is broken
[[nodiscard]] SafetensorsFile open_header(const std::filesystem::path& path);

/// Opens a checkpoint whose every byte is as it was written. One of a version without a checksum opens too
/// (is_summed() tells); a damaged one cannot pass for it: the two have other formats.
///
/// Cost     reads the file once
/// Errors   as open_header(); Error(data) where a byte differs
[[nodiscard]] SafetensorsFile open_checkpoint(const std::filesystem::path& path);

/// Whether its bytes were checked: files of older versions have no checksum.
[[nodiscard]] bool is_summed(const SafetensorsFile& checkpoint);

/// The text of `key`, "" where there is none.
[[nodiscard]] std::string text_in(const SafetensorsFile& checkpoint, const std::string& key);
/// Errors   Error(data) where it is missing or no whole number
[[nodiscard]] std::int64_t number_in(const SafetensorsFile& checkpoint, const std::string& key);
/// What the validation part had decided; nothing decided where there was none.
/// Errors   Error(data) where a part of it is missing or no number
[[nodiscard]] ValidationState validation_in(const SafetensorsFile& checkpoint);

/// What is known of the loss; nothing in checkpoints of before the key.
/// Errors   Error(data) where it is damaged
[[nodiscard]] GuardState guard_in(const SafetensorsFile& checkpoint);
/// Whether its loss was checked and found good; checkpoints of before the key do not say it.
[[nodiscard]] bool says_it_is_good(const SafetensorsFile& checkpoint);

/// The texts from which guard_in() and says_it_is_good() read.
[[nodiscard]] Metadata texts_of(const GuardState& guard);
/// The texts from which validation_in() reads; none where nothing was decided yet.
[[nodiscard]] Metadata texts_of(const ValidationState& validation);

}  // namespace paceline::train
