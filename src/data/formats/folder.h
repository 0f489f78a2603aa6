#pragma once

/// Opens JPEG and PNG files of any size in class folders, or in a tar archive of such folders. They are
/// listed when opened and decoded when read. docs/formats.md has the rules for parts and classes.

#include "data/dataset.h"
#include "data/spec.h"

namespace paceline::data {

/// Opens `folder:DIR[,size=N|HxW][,crop-area=X][,jitter=X][,flip=0|1][,classes=leaf|top][,test=X]`, where DIR
/// may be a tar archive.
///
/// Cost     reads directories, no image (with spec.how.skip_bad_images: decodes every image once, on
///          spec.how.threads threads)
/// Errors   Error(usage) for an option out of range; Error(data) for a folder that cannot be read or holds no
///          classes (image/listing.h)
[[nodiscard]] Source open_folder(const Spec& spec);

}  // namespace paceline::data
