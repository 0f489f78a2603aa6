#pragma once

/// From a store of images and their paths to a source: what folder and archive have in common.

#include <memory>

#include "data/dataset.h"
#include "data/image/listing.h"
#include "data/image/store.h"
#include "data/spec.h"

namespace paceline::data {

/// Arranges the images of `store`, whose image i has the path `listing.path(i)`, by the options of `spec`.
/// The caller sets source.name.
[[nodiscard]] Source open_images(const Spec& spec, std::shared_ptr<const ImageStore> store,
                                 const ImageListing& listing);

}  // namespace paceline::data
