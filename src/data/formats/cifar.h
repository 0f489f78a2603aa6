#pragma once

/// CIFAR-10 in either version: binary (records of 1 label byte and 3,072 pixel bytes: red, green, blue plane;
/// no header) or python (cifar_python.h). docs/formats.md has both; the file names that are read are given,
/// never `*.bin`.

#include "data/dataset.h"
#include "data/spec.h"

namespace paceline::data {

/// Opens `cifar10:DIR[,test=FILE]`: DIR holds the files, or a folder cifar-10-batches-bin/ or
/// cifar-10-batches-py/ that does.
///
/// Errors   Error(data) for a missing file, a length that is no whole number of records, a label above 9, a
///          python file that is not in the published form (with the offset)
[[nodiscard]] Source open_cifar10(const Spec& spec);

}  // namespace paceline::data
