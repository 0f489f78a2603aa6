#pragma once

/// `paceline data info|verify|pack|manifest` for images in files: contents, broken images, duplicates, and
/// packing into one file. `data pack --shards` and `data stage`, which bring data to a cluster
/// (data_cluster.cc).

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "data/dataset.h"
#include "data/image/dataset.h"

namespace paceline::cli {

struct ImagePart {
  std::string name;  ///< "train", "validation", "test"
  const data::ImageDataset* set = nullptr;
};

/// The parts of `source` that are images in files; empty for other data sets.
[[nodiscard]] std::vector<ImagePart> image_parts(const data::Source& source);

/// Prints a line if classes have very different numbers of training images.
void print_unevenness(std::span<const std::int64_t> training_images);

/// Prints classes, sizes, kinds, and faults visible in headers. Reads every file, decodes none.
int describe_images(const data::Source& source, const std::vector<ImagePart>& parts);

/// Decodes every image, looks for duplicates, and prints what is wrong.
///
/// Errors   Error(data) with the number of broken images, after all of them were listed
///
/// `list`: a CSV file with a row for each finding; "": none.
int verify_images(const data::Source& source, const std::vector<ImagePart>& parts, const std::string& list);

/// Writes a tar archive PART/CLASS/NUMBER.ENDING, which opens (folder:FILE.tar) with the same parts, classes
/// and order; with `decoded` every image as PPM.
///
/// Errors   Error(data): the file cannot be written, or (with `decoded`) an image is broken
int pack_images(const data::Source& source, const std::vector<ImagePart>& parts,
                const std::filesystem::path& path, bool decoded);

/// Writes the manifest of the folder in `spec`, and prints what it lists.
///
/// Errors   Error(usage): the spec names no folder; Error(data): as data::write_manifest
int write_image_manifest(const std::string& spec);

/// Packs `source` into shards (data/shards/pack.h), shows how far it is, and prints the spec that opens them.
/// Returns the exit code.
int pack_into_shards(const Settings& settings, const data::Source& source);

/// Copies the files of the data to a directory of this host (data/stage.h). Standard output has the spec of
/// the copy alone. Returns the exit code.
int stage_data(const Settings& settings);

}  // namespace paceline::cli
