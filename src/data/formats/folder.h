#pragma once

/// JPEG and PNG files in class folders, of any sizes, or in a tar archive of such folders: listed when
/// opened, decoded when read. docs/formats.md has the rules by which folders become parts and classes.

#include "data/dataset.h"
#include "data/spec.h"

namespace paceline::data {

/// Opens (DIR may be a tar archive)
/// `folder:DIR[,size=N|HxW][,crop-area=X][,jitter=X][,flip=0|1][,classes=leaf|top][,test=X]`.
///
/// Cost     reads directories only, no image (with spec.how.skip_bad_images it decodes every one once, on
///          spec.how.threads threads)
/// Errors   Error(usage) for an option out of range; Error(data) for a folder that cannot be read or holds no
///          classes (image/listing.h)
[[nodiscard]] Source open_folder(const Spec& spec);

}  // namespace paceline::data
