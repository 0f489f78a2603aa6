#pragma once

/// MNIST as IDX files: big-endian header (magic, counts, sizes), then bytes; plain or .gz. docs/formats.md
/// has the format.

#include "data/dataset.h"
#include "data/spec.h"

namespace paceline::data {

/// Opens `mnist:DIR`: DIR, or its child mnist/, holds {train,t10k}-{images-idx3,labels-idx1}-ubyte, each of
/// them plain or with .gz (plain is taken where both are there).
///
/// Errors   Error(data) for a missing file, a wrong magic number, a length or count that contradicts the
///          header, a label above 9, gzip data that breaks off or is damaged
[[nodiscard]] Source open_mnist(const Spec& spec);

}  // namespace paceline::data
