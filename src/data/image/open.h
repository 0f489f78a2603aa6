#pragma once

/// Makes a Source from a store of images and their paths; used for folders and archives.

#include <memory>

#include "data/dataset.h"
#include "data/image/listing.h"
#include "data/image/store.h"
#include "data/spec.h"

namespace paceline::data {

/// Arranges the images of `store` by the options of `spec`; image i has the path `listing.path(i)`. The
/// caller sets source.name.
[[nodiscard]] Source open_images(const Spec& spec, std::shared_ptr<const ImageStore> store,
                                 const ImageListing& listing);

}  // namespace paceline::data
