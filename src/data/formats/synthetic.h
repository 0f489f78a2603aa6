#pragma once

/// A generated data set that needs no files: images are drawn from (seed, index).
///
/// A class is a shape, a texture and a colour scheme (cues_of_class) of one object, which has a random place,
/// rotation and scale, among distractors, on a textured ground, with noise and changing light. Any two of the
/// three cues identify the class, no single one does, and in some images one cue is false. So a network has
/// to find the object and combine cues; single pixels and mean colours say little about the class
/// (tests/data/formats/synthetic_test.cc measures how little). docs/formats.md has the recipe and the
/// accuracy of networks on it.

#include "data/dataset.h"
#include "data/formats/synthetic_draw.h"
#include "data/spec.h"

namespace paceline::data {

/// No two classes share two cues.
[[nodiscard]] Cues cues_of_class(int label);

/// Opens `synthetic[,train=N][,test=N][,seed=S][,delay-us=T]`; defaults: 50,000 and 10,000 images, seed 0.
/// With a delay the reading thread sleeps that long before each image, to emulate a slow disk. Training and
/// test images never coincide, whatever the sizes.
///
/// Errors   Error(usage) for a size or seed out of range
[[nodiscard]] Source open_synthetic(const Spec& spec);

}  // namespace paceline::data
