#pragma once

/// Opens MNIST as IDX files: big-endian header (magic, counts, sizes), then bytes; plain or .gz. See
/// docs/formats.md.

#include "data/dataset.h"
#include "data/spec.h"

namespace paceline::data {

/// Opens `mnist:DIR`: DIR, or its child mnist/, holds {train,t10k}-{images-idx3,labels-idx1}-ubyte, each
/// plain or with .gz (plain wins if both exist).
///
/// Errors   Error(data) for a missing file, a wrong magic number, a length or count that contradicts the
///          header, a label above 9, truncated or damaged gzip data
[[nodiscard]] Source open_mnist(const Spec& spec);

}  // namespace paceline::data
