#pragma once

/// Writes a data set as shards: uncompressed tar files whose members KEY.jpg and KEY.cls are a sample, as
/// WebDataset keeps them.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "data/dataset.h"

namespace paceline::data {

struct PackingOptions {
  int shards = 1;            ///< of the training part; the other parts have shards of the same size
  bool keeps_order = false;  ///< otherwise training samples are in an order drawn from a fixed seed
  int max_side = 0;          ///< > 0: images with a longer side are scaled down to it and stored as JPEG
  int quality = 90;          ///< of those, 1 to 100
  int threads = 1;
};

struct PackedShards {
  std::string spec;  ///< opens them, with the options of the source about sizes and augmentation
  std::int64_t images = 0, scaled = 0;
  std::int64_t bytes = 0;  ///< of the files
  int files = 0;
};

/// Writes the parts of `source` to the folder `out`, which must not exist or be empty: train-0000.tar,
/// validation-0000.tar, test-0000.tar and so on, classes.txt with a class a line, and the manifest. A key is
/// the sample's number in its part of `source`, KEY.cls the class's line from 0. Images in files keep their
/// bytes, arrays become PNG. Shards of a part differ by at most one sample; validation and test keep their
/// order. The same source and options give the same bytes.
///
/// The folder appears when it is complete. Nothing stays of a packing that fails or is stopped; what a killed
/// one left is removed by the next one into the same folder.
///
/// Returns   nothing where it was asked to stop
/// Cost      decodes each image, JPEG at the smallest scale
/// Errors    Error(usage): a name that a spec cannot hold, more shards than samples; Error(data): `out` is
///           there, too little space, an image that cannot be read or decoded, a class's name with a line end
/// Threads   `progress` is called from any, one at a time
[[nodiscard]] std::optional<PackedShards> pack_shards(
    const Source& source, const std::filesystem::path& out, const PackingOptions& options,
    std::stop_token stop, const std::function<void(std::int64_t done, std::int64_t all)>& progress);

}  // namespace paceline::data
