#pragma once

/// The header of a checkpoint: format, checksum, and metadata.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/engine.h"
#include "train/checkpoint/safetensors.h"
#include "train/step/loss_guard.h"

namespace paceline::train {

/// The `format` of files that this version writes, of older ones that know no data, and of still older ones
/// without a checksum.
inline constexpr const char* kCheckpointFormat = "paceline-checkpoint-3";
inline constexpr const char* kFormatWithoutData = "paceline-checkpoint-2";
inline constexpr const char* kFormatWithoutSum = "paceline-checkpoint-1";
[[nodiscard]] bool is_checkpoint_format(const std::string& format);

/// Prefixes of the names of Lookahead's slow weights, and of the averages of --ema.
inline constexpr const char* kSlowPrefix = "lookahead.";
inline constexpr const char* kAveragePrefix = "ema.";

/// Opens a checkpoint to read its header; its arrays may be damaged.
///
/// Cost     the header only
/// Errors   Error(data): it cannot be read, is no checkpoint, or its header is broken
[[nodiscard]] SafetensorsFile open_header(const std::filesystem::path& path);

/// Opens a checkpoint and checks every byte. Older files without a checksum open too (is_summed() tells). A
/// damaged new file cannot pass for an old one, since their formats differ.
///
/// Cost     reads the file once
/// Errors   as open_header(); Error(data) if a byte differs
[[nodiscard]] SafetensorsFile open_checkpoint(const std::filesystem::path& path);
/// Whether the file has arrays whose names begin with `prefix`.
[[nodiscard]] bool has_arrays(const SafetensorsFile& file, std::string_view prefix);

/// Whether its bytes were checked: older files have no checksum.
[[nodiscard]] bool is_summed(const SafetensorsFile& checkpoint);

// What the metadata of a checkpoint say; an older one that lacks a part leaves it as it begins.
//
// Errors   Error(data): a part is damaged

/// The text of `key`, "" if there is none.
[[nodiscard]] std::string text_in(const SafetensorsFile& checkpoint, const std::string& key);
/// The number of `key`, which must be there.
[[nodiscard]] std::int64_t number_in(const SafetensorsFile& checkpoint, const std::string& key);
[[nodiscard]] ValidationState validation_in(const SafetensorsFile& checkpoint);
[[nodiscard]] GuardState guard_in(const SafetensorsFile& checkpoint);
[[nodiscard]] engine::LossScale loss_scale_in(const SafetensorsFile& checkpoint);
/// Whether its loss was checked and found good; false in older checkpoints.
[[nodiscard]] bool says_it_is_good(const SafetensorsFile& checkpoint);
/// The data that its run had; without classes in older checkpoints.
[[nodiscard]] data::DataIdentity data_in(const SafetensorsFile& checkpoint);

// The metadata that these read; empty if nothing was decided yet, or no classes are known.
[[nodiscard]] Metadata texts_of(const ValidationState& validation);
[[nodiscard]] Metadata texts_of(const GuardState& guard);
[[nodiscard]] Metadata texts_of(const engine::LossScale& scale);
[[nodiscard]] Metadata texts_of(const data::DataIdentity& data);

/// What a checkpoint without names of classes leaves unknown, in a sentence.
[[nodiscard]] std::string note_of_no_classes(const std::filesystem::path& checkpoint);
/// "'cat', 'dog', and 7 more".
[[nodiscard]] std::string some_of(const std::vector<std::string>& names);
/// The part of a sentence that says in which classes `now` differs from `then`: "'red' is missing, 'a_red' is
/// new". "" if they are the same in the same order.
[[nodiscard]] std::string difference_of_classes(const std::vector<std::string>& then,
                                                const std::vector<std::string>& now);

/// How images are seen `now` and were seen `then`, as far as that differs: size, part, mean and
/// deviation. Both "" if nothing does.
struct FormatDifference {
  std::string now, then;
};
[[nodiscard]] FormatDifference difference_of_format(const data::DataIdentity& then,
                                                    const data::DataIdentity& now);

}  // namespace paceline::train
