#pragma once

/// Opens the data sets of each format. open.cc has a row for each.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/spec.h"

namespace paceline::data {

// Reads a file of CIFAR-10's Python version, as torchvision downloads it to cifar-10-batches-py: a pickled
// dictionary with "data", a byte array [images][3072] (red, green, blue plane), and "labels", a list.

struct CifarPythonBatch {
  std::vector<std::uint8_t> labels;
  std::span<const std::uint8_t> pixels;  ///< [labels.size()][3072], inside the bytes of the file
};

/// `key`: of the list of labels, in CIFAR-100 "fine_labels" or "coarse_labels".
///
/// Errors   Error(data) naming `path` and the offset of what does not have this form; labels are below
///          `classes`
[[nodiscard]] CifarPythonBatch read_cifar_python(const std::string& path, std::span<const std::uint8_t> bytes,
                                                 const std::string& key = "labels", int classes = 10);

// Opens CIFAR-10, in its binary version (records of 1 label byte and 3,072 pixel bytes: red, green, blue
// plane; no header) or its Python version. docs/formats.md describes both. Files are read by fixed
// names, not by `*.bin`.

/// Opens `cifar10:DIR[,test=FILE]`: DIR, or its folder cifar-10-batches-bin/ or cifar-10-batches-py/, holds
/// the files.
///
/// Errors   Error(data) for a missing file, a length that is no multiple of a record, a label above 9, a
///          Python file that is not in the published form (with the offset)
[[nodiscard]] Source open_cifar10(const Spec& spec);

/// Opens `cifar100:DIR[,labels=fine|coarse]`: train.bin and test.bin, whose records begin with two label
/// bytes (coarse, fine), or the Python version's train and test, in DIR or in the folder that the archive
/// makes.
///
/// Errors   as open_cifar10(): both labels of each record of the binary version are checked
[[nodiscard]] Source open_cifar100(const Spec& spec);

// Opens MNIST as IDX files: big-endian header (magic, counts, sizes), then bytes; plain or .gz. See
// docs/formats.md.

/// The folder in or below `given` that holds MNIST's training images: `given` itself, mnist/, raw/,
/// MNIST/raw/ (as torchvision unpacks it), or raw/ of its only child that has one. Nothing if there is none.
///
/// Errors   Error(data): several children have one
[[nodiscard]] std::optional<std::filesystem::path> find_mnist(const std::filesystem::path& given);

/// Whether `given` holds MNIST as others keep it: EMNIST's files, Keras's mnist.npz, or Kaggle's tables.
[[nodiscard]] bool is_mnist_of_others(const std::filesystem::path& given);

/// Opens `mnist:DIR[,split=NAME][,test=X]`: find_mnist(DIR) holds
/// {train,t10k}-{images-idx3,labels-idx1}-ubyte, or "images.idx3", or a folder of the file's name that holds
/// it; each plain or with .gz (plain wins if both exist). Else EMNIST's files, the split that `split` names;
/// Keras's mnist.npz; Kaggle's tables.
///
/// Errors   Error(data) for a missing file, a wrong magic number, a length or count that contradicts the
///          header, a label that no class has (number_classes()), truncated or damaged gzip data
[[nodiscard]] Source open_mnist(const Spec& spec);

// Arrays of NumPy in one file, as MedMNIST's.

/// Opens `npz:FILE[,test=X][,range=own|LOW:HIGH]`: train_images, train_labels, val_..., test_..., or Keras's
/// x_train, y_train, ... . Images are bytes, or 16 bits with `range`.
///
/// Cost     all images in memory
/// Errors   Error(data) as read_npz() and source_of_arrays()
[[nodiscard]] Source open_npz(const Spec& spec);

// Opens JPEG and PNG files of any size in class folders, or in a tar archive of such folders. They are
// listed when opened and decoded when read. docs/formats.md has the rules for parts and classes.

/// Opens `folder:DIR[,size=N|HxW][,eval-size=N|HxW][,eval-resize=N|fit][,crop-area=X][,jitter=X][,flip=0|1]
/// [,range=own|LOW:HIGH][,classes=leaf|top][,test=X]`, where DIR may be a tar archive.
///
/// Cost     reads directories, no image (with spec.how.skip_bad_images: decodes every image once, on
///          spec.how.threads threads)
/// Errors   Error(usage) for an option out of range; Error(data) for a folder that cannot be read or holds no
///          classes (image/listing.h)
[[nodiscard]] Source open_folder(const Spec& spec);

/// Opens `shards:PATTERN[,validation=PATTERN][,test=PATTERN][,label=FIELD][,classes=FILE]` and the options of
/// open_folder() about sizes and augmentation: tar files of KEY.jpg and KEY.cls (shards/shards.h). Without
/// `test` the test set is empty.
///
/// Cost     with a manifest: reads it; without: reads the headers of all shards
/// Errors   Error(usage) for an option or a pattern; Error(data) for a shard that is missing or damaged, and
///          for labels that are no classes
[[nodiscard]] Source open_shards(const Spec& spec);

// A generated data set that needs no files: images are drawn from (seed, index).
//
// A class is a shape, a texture and a colour scheme (cues_of_class) of one object, which has a random place,
// rotation and scale, among distractors, on a textured ground, with noise and changing light. Any two of the
// three cues identify the class, no single one does, and in some images one cue is false. So a network has
// to find the object and combine cues; single pixels and mean colours say little about the class
// (tests/data/formats/synthetic_test.cc measures how little). docs/formats.md has the recipe and the
// accuracy of networks on it.

/// The three cues of a class, each 0 .. 4.
struct Cues {
  int shape = 0;    ///< disc, square, triangle, cross, ring
  int texture = 0;  ///< stripes, checks, dots, bands, halves
  int scheme = 0;   ///< two colours of a wheel of five that are not neighbours
  bool operator==(const Cues&) const = default;
};
/// No two classes share two cues.
[[nodiscard]] Cues cues_of_class(int label);

/// Opens `synthetic[,train=N][,test=N][,seed=S][,size=P][,classes=N][,delay-us=T]`; defaults: 50,000 and
/// 10,000 images, seed 0, 32x32, 10 classes. Another size repeats or leaves out pixels; of more than ten
/// classes several share their pictures, so that nothing can tell them apart: for measurements of speed. With
/// a delay the reading thread sleeps that long before each image, to emulate a slow disk. Training and test
/// images never coincide, whatever the sizes.
///
/// Errors   Error(usage) for a size or seed out of range
[[nodiscard]] Source open_synthetic(const Spec& spec);

}  // namespace paceline::data
