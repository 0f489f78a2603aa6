#pragma once

/// Opens CIFAR-10, in its binary version (records of 1 label byte and 3,072 pixel bytes: red, green, blue
/// plane; no header) or its Python version (cifar_python.h). docs/formats.md describes both. Files are read
/// by fixed names, not by `*.bin`.

#include "data/dataset.h"
#include "data/spec.h"

namespace paceline::data {

/// Opens `cifar10:DIR[,test=FILE]`: DIR, or its folder cifar-10-batches-bin/ or cifar-10-batches-py/, holds
/// the files.
///
/// Errors   Error(data) for a missing file, a length that is no multiple of a record, a label above 9, a
///          Python file that is not in the published form (with the offset)
[[nodiscard]] Source open_cifar10(const Spec& spec);

}  // namespace paceline::data
