#include "data/image/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/image/decode.h"
#include "data/image/inspect.h"
#include "data/image/label_table.h"

namespace paceline::data {
namespace {

using base::ErrorKind;

constexpr int kUsualSide = 64;
constexpr std::int64_t kMostSide = 1024;

/// The option `key`, N or HxW; `usual` where it is not given.
ImageFormat format_of(const Spec& spec, const std::string& key, const ImageFormat& usual) {
  const auto text = spec.option(key);
  if (!text) return usual;
  const auto cross = text->find('x');
  const auto side_from = [&](const std::string& number) {
    return static_cast<int>(integer_in(spec, key, number, 1, kMostSide));
  };
  const auto height = side_from(text->substr(0, cross));
  const auto width = cross == std::string::npos ? height : side_from(text->substr(cross + 1));
  return {.height = height, .width = width, .channels = 3};
}

/// From this size on evaluation is that of other programs if nothing else is asked for: 256 for 224, and as
/// much for others. Smaller images keep all that fits, so that figures of before stay comparable.
constexpr int kLeastResized = 128;

int eval_resize_of(const Spec& spec, const ImageFormat& format) {
  const int longer = std::max(format.height, format.width);
  const auto text = spec.option("eval-resize");
  if (!text) return format.height == format.width && longer >= kLeastResized ? longer * 8 / 7 : 0;
  if (*text == "fit") return 0;
  const auto most = 4 * kMostSide;
  if (text->find_first_not_of("0123456789") != std::string::npos)
    base::fail(
        ErrorKind::usage,
        "data '{}': eval-resize is what the shorter side becomes before the centre is cropped, a whole "
        "number from {} to {}, or fit, not '{}'; correct it",
        spec.text, longer, most, *text);
  return static_cast<int>(integer_in(spec, "eval-resize", *text, longer, most));
}

ClassDepth depth_of(const Spec& spec) {
  const auto classes = spec.option("classes");
  if (!classes) return ClassDepth::unsaid;
  if (*classes == "leaf") return ClassDepth::leaf;
  if (*classes == "top") return ClassDepth::top;
  base::fail(
      ErrorKind::usage,
      "data '{}': classes is leaf (the folder an image lies in) or top (the first below train/ and test/), "
      "not '{}'; correct it",
      spec.text, *classes);
}

/// Some files of `images` that end so, in an order in which the first of them are from all over the set.
/// Without `listing` their names are unknown, and all may end so.
std::vector<std::uint32_t> some_of(const ImageListing* listing, const std::vector<std::uint32_t>& images,
                                   std::initializer_list<std::string_view> endings) {
  constexpr std::size_t kMost = 32, kStride = 13;  // coprime: each once
  std::vector<std::uint32_t> all, some;
  for (const auto image : images)
    if (listing == nullptr || std::ranges::find(endings, ending_of(listing->name(image))) != endings.end())
      all.push_back(image);
  for (std::size_t i = 0; i < kMost; ++i) {
    const auto at = i * kStride % kMost;
    if (all.size() >= kMost)
      some.push_back(all[at * all.size() / kMost]);
    else if (at < all.size())
      some.push_back(all[at]);
  }
  return some;
}

/// Images of 16 bits among some of the training images.
struct DeepImages {
  int looked_at = 0;
  int deep = 0;              ///< of 16 bits
  int small = 0;             ///< of these, whose values end far below 65535
  int largest_of_small = 0;  ///< the largest value of those
};

DeepImages find_deep(const ImageStore& store, const ImageListing* listing,
                     const std::vector<std::uint32_t>& train) {
  constexpr int kSmall = 1 << 14;
  constexpr int kEnough = 8;  // good ones, for which no more are decoded
  DeepImages found;
  std::vector<std::uint8_t> buffer;
  for (const auto image : some_of(listing, train, {".png", ".tif", ".tiff"})) {
    if (found.small == 0 && found.deep >= kEnough) break;
    try {
      const auto values = values_of_16_bits(store.bytes(image, buffer));
      ++found.looked_at;
      if (values.empty()) continue;
      ++found.deep;
      const int largest = *std::ranges::max_element(values);
      if (largest >= kSmall) continue;
      ++found.small;
      found.largest_of_small = std::max(found.largest_of_small, largest);
    } catch (const BrokenImage&) {
      continue;  // named when it is read
    } catch (const base::Error&) {
      continue;
    }
  }
  return found;
}

/// Notes how images of 16 bits become 8 bits. Refuses to take the upper 8 bits where values end far below
/// 65535, as those of scans of 12 bits do: hardly anything would be left of them. A few such files among
/// others are noted.
void check_16_bits(const Spec& spec, Source& source, const ImageStore& store, const ImageListing* listing,
                   const std::vector<std::uint32_t>& train) {
  const auto found = find_deep(store, listing, train);
  const auto of_those = fmt::format("of the {} {} that were looked at", found.looked_at,
                                    listing != nullptr ? "PNG and TIFF files" : "images");
  if (source.range) {
    source.notes.push_back(
        found.deep == 0
            ? fmt::format("range={} changes nothing: none {} has 16 bits", text_of(*source.range), of_those)
            : fmt::format("range={}: {} {} have 16 bits, {}", text_of(*source.range), found.deep, of_those,
                          source.range->fixed ? "of which these values become 0 and 255"
                                              : "each scaled by its own smallest and largest value"));
    return;
  }
  if (found.small == 0) return;
  int end = 1;
  while (end <= found.largest_of_small) end *= 2;
  const auto said = fmt::format(
      "{} {} have 16 bits and hold values up to {} of 65535, of which {} levels are left in the 8 bits that are "
      "read; add range=0:{}, or range=own, which scales each image by its own values",
      found.small, of_those, found.largest_of_small, found.largest_of_small / 256 + 1, std::max(1, end - 1));
  if (2 * found.small >= found.deep) base::fail(ErrorKind::data, "data '{}': {}", spec.text, said);
  source.notes.push_back(said);
}

/// Says that EXIF turns images: other programs may not, and see them as they are stored.
void note_turned(const ImageStore& store, const ImageListing* listing,
                 const std::vector<std::uint32_t>& train, std::vector<std::string>& notes) {
  int looked_at = 0, turned = 0;
  std::vector<std::uint8_t> buffer;
  for (const auto image : some_of(listing, train, {".jpg", ".jpeg"})) try {
      const auto bytes = store.bytes(image, buffer);
      if (bytes.size() < 2 || bytes[0] != 0xff || bytes[1] != 0xd8) continue;
      turned += jpeg_turn(bytes) > 1 ? 1 : 0;
      ++looked_at;
    } catch (const base::Error&) {
      continue;  // named when it is read
    }
  if (turned > 0)
    notes.push_back(fmt::format(
        "EXIF turns {} of the {} JPEG files that were looked at; they are read upright, as PIL's exif_transpose() "
        "turns them, while torchvision's ImageFolder does not",
        turned, looked_at));
}

/// Removes broken images from `part`, and says so in the notes of `source`, whose range is known.
void leave_out_broken(const ImageStore& store, const char* name, const OpenOptions& how, ArrangedPart& part,
                      Source& source) {
  constexpr std::size_t kNamed = 5;
  const auto broken = how.broken_images != nullptr
                          ? how.broken_images->find(store, part.images, how.threads, source.range)
                          : find_broken(store, part.images, how.threads, source.range);
  if (broken.empty()) return;
  std::string named;
  for (std::size_t i = 0; i < std::min(kNamed, broken.size()); ++i)
    named += fmt::format("{}{}: {}", i == 0 ? "" : "; ", broken[i].name, broken[i].reason);
  if (broken.size() > kNamed) named += fmt::format("; and {} more", broken.size() - kNamed);
  source.notes.push_back(fmt::format("{} of {} {} images are broken and left out: {}", broken.size(),
                                     part.images.size(), name, named));
  ArrangedPart whole;
  std::size_t next = 0;
  for (std::size_t i = 0; i < part.images.size(); ++i) {
    if (next < broken.size() && broken[next].at == i) {
      ++next;
      continue;
    }
    whole.images.push_back(part.images[i]);
    whole.labels.push_back(part.labels[i]);
  }
  if (whole.images.empty())
    base::fail(ErrorKind::data, "none of the {} {} images can be decoded ({}); is this the right folder?",
               part.images.size(), name, named);
  part = std::move(whole);
}

/// Reports classes without any (remaining) training image, which cannot be learned.
void name_empty_classes(const ArrangedPart& train, const std::vector<std::string>& names,
                        std::vector<std::string>& notes) {
  std::vector<bool> has_some(names.size());
  for (const auto label : train.labels) has_some[static_cast<std::size_t>(label)] = true;
  std::vector<std::string> empty;
  for (std::size_t c = 0; c < names.size(); ++c)
    if (!has_some[c]) empty.push_back(names[c]);
  if (empty.empty()) return;
  notes.push_back(fmt::format("no training image is left of {}: {}",
                              base::counted(empty.size(), "class", "classes"), base::joined(empty, ", ")));
}

}  // namespace

Source open_images(const Spec& spec, std::shared_ptr<const ImageStore> store, const ImageListing& listing) {
  const double test_part = decimal_option(spec, "test", 0.2, 0.01, 0.9);
  const bool has_table = spec.options.contains("labels");
  for (const char* key : {"image", "label"})
    if (!has_table && spec.options.contains(key))
      base::fail(ErrorKind::usage,
                 "data '{}': {} names a column of a table, but there is none; add labels=FILE", spec.text,
                 key);
  if (has_table && spec.options.contains("classes"))
    base::fail(
        ErrorKind::usage,
        "data '{}': classes says which folder is the class, but labels={} says the classes; leave one out",
        spec.text, spec.options.at("labels"));
  Arranged arranged = has_table ? arrange_by_table(spec, listing, test_part)
                                : arrange(spec.text, listing, depth_of(spec), test_part);
  if (arranged.has_parts && spec.options.contains("test"))
    arranged.notes.push_back(
        fmt::format("test={} changes nothing: no test set is split off where there is a test or validation "
                    "folder",
                    spec.options.at("test")));
  Source source = open_arranged(spec, std::move(store), std::move(arranged), &listing);
  source.resident_bytes += listing.bytes();
  return source;
}

Source open_arranged(const Spec& spec, std::shared_ptr<const ImageStore> store, Arranged arranged,
                     const ImageListing* listing) {
  const ImageFormat format =
      format_of(spec, "size", {.height = kUsualSide, .width = kUsualSide, .channels = 3});
  const ImageFormat evaluated = format_of(spec, "eval-size", format);
  Source source;
  source.crop_area = decimal_option(spec, "crop-area", 0.08, 0.01, 1);
  source.jitter = decimal_option(spec, "jitter", 0, 0, 1);
  source.eval_resize = eval_resize_of(spec, evaluated);
  source.range = range_option(spec);
  source.flip = integer_option(spec, "flip", 1, 0, 1) != 0 ? Flip::random : Flip::none;
  source.class_names = std::move(arranged.class_names);
  source.notes = std::move(arranged.notes);
  check_16_bits(spec, source, *store, listing, arranged.train.images);
  note_turned(*store, listing, arranged.train.images, source.notes);
  if (spec.how.skip_bad_images) {
    leave_out_broken(*store, "training", spec.how, arranged.train, source);
    if (!arranged.validation.images.empty())
      leave_out_broken(*store, "validation", spec.how, arranged.validation, source);
    leave_out_broken(*store, "test", spec.how, arranged.test, source);
    name_empty_classes(arranged.train, source.class_names, source.notes);
  }
  const auto dataset = [&](ArrangedPart& part, const ImageDataset::Seen& seen,
                           std::optional<ImageDataset::Seen> as_evaluated) {
    source.resident_bytes += static_cast<std::int64_t>(part.images.size() * 8);
    return std::make_unique<ImageDataset>(store, std::move(part), seen, as_evaluated);
  };
  const ImageDataset::Seen tested{evaluated, source.eval_resize, source.range};
  // Of another size than evaluation's, training without augmentation takes all that fits.
  source.train = format == evaluated
                     ? dataset(arranged.train, tested, {})
                     : dataset(arranged.train, {.format = format, .range = source.range}, tested);
  if (!arranged.validation.images.empty()) source.validation = dataset(arranged.validation, tested, {});
  source.test = dataset(arranged.test, tested, {});
  source.description = fmt::format(
      "images of {} classes: {} to train, {}{} to test, scaled to {}x{}x3{}{}", source.classes(),
      source.train->size(),
      source.validation ? fmt::format("{} to validate, ", source.validation->size()) : "",
      source.test->size(), format.height, format.width,
      evaluated == format ? "" : fmt::format(", to test {}x{}x3", evaluated.height, evaluated.width),
      source.eval_resize > 0 ? fmt::format(" (to test: {} and the centre)", source.eval_resize) : "");
  // Over the photographs of ImageNet; the values in common use for data sets without their own.
  source.mean = {0.485f, 0.456f, 0.406f};
  source.stddev = {0.229f, 0.224f, 0.225f};
  return source;
}

}  // namespace paceline::data
