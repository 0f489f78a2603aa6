#pragma once

/// CIFAR-10, binary version: records of 1 label byte and 3,072 pixel bytes (red, green, blue plane), no
/// header. docs/formats.md has the format; the file names that are read are given, never `*.bin`.

#include "data/dataset.h"
#include "data/spec.h"

namespace paceline::data {

/// Opens `cifar10:DIR[,test=FILE]`: DIR holds the .bin files, or a folder cifar-10-batches-bin/ that does.
///
/// Errors   Error(data) for a missing file, a length that is no whole number of records, a label above 9
[[nodiscard]] Source open_cifar10(const Spec& spec);

}  // namespace paceline::data
