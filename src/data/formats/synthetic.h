#pragma once

/// Images drawn from (seed, index), without files or storage: the data set that is always there.
///
/// A class is a shape, a texture and a colour scheme (cues_of_class), on one object that stands
/// anywhere in the image, turned and scaled at random, among distractors, on a textured ground, under noise
/// and changing light. Any two of the three cues name the class and no single one does; in some images one
/// cue is false. So a network has to find the object and to combine what it sees: no pixel and no mean colour
/// gives the class away (tests/data/formats/synthetic_test.cc holds how little they do). docs/formats.md has
/// the whole recipe and what networks reach on it.

#include "data/dataset.h"
#include "data/formats/synthetic_draw.h"
#include "data/spec.h"

namespace paceline::data {

/// No two classes share two cues.
[[nodiscard]] Cues cues_of_class(int label);

/// Opens `synthetic[,train=N][,test=N][,seed=S][,delay-us=T]`: 50,000 and 10,000 images with seed 0 unless
/// told. With a delay the thread that reads an image first sleeps so long: a slow disk whose cost is known.
/// The test images are other draws than the training images for any sizes.
///
/// Errors   Error(usage) for a size or seed out of range
[[nodiscard]] Source open_synthetic(const Spec& spec);

}  // namespace paceline::data
