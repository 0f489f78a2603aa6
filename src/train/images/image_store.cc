#include "train/images/image_store.h"

#include <algorithm>

#include "base/error.h"

namespace paceline::train {
namespace {

/// Images are read into a buffer of this size, then copied to the device.
constexpr std::int64_t kChunkBytes = std::int64_t{1} << 20;

}  // namespace

ImageStore::ImageStore(const Job& job, const data::Augment& augment, engine::Engine& engine)
    : job_(job), engine_(engine) {
  const StoredImages& stored = job.resolved.stored;
  base::expects(stored.total() > 0, "the engine has room for images");
  validation_.first = stored.train;
  test_.first = stored.train + stored.validation;
  engine.set_byte_values(augment.byte_values());
}

std::int64_t ImageStore::planned_bytes(const StoredImages& stored) {
  if (stored.total() == 0) return 0;
  return stored.total() * static_cast<std::int64_t>(sizeof(std::int32_t)) + kChunkBytes;
}

const ImageStore::Part& ImageStore::train() {
  return fill(train_, *job_.source.train, 0, job_.source.train->size());
}
const ImageStore::Part& ImageStore::validation(std::int64_t begin, std::int64_t end) {
  base::expects(end - begin <= job_.resolved.stored.validation, "there is room for the validation part");
  return fill(validation_, *job_.source.validation, begin, end);
}
const ImageStore::Part& ImageStore::test(std::int64_t begin, std::int64_t end) {
  base::expects(end - begin <= job_.resolved.stored.test, "there is room for the part of the test set");
  return fill(test_, *job_.source.test, begin, end);
}

const ImageStore::Part& ImageStore::fill(Part& part, const data::Dataset& set, std::int64_t begin,
                                         std::int64_t end) {
  if (part.is_there) {
    base::expects(static_cast<std::int64_t>(part.labels.size()) == end - begin, "a part stays the same");
    return part;
  }
  const std::int64_t image = set.format().bytes();
  const std::int64_t at_once =
      std::clamp<std::int64_t>(kChunkBytes / image, 1, std::max<std::int64_t>(1, end - begin));
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(at_once * image));
  part.labels.resize(static_cast<std::size_t>(end - begin));
  for (std::int64_t done = 0; done < end - begin; done += at_once) {
    const std::int64_t count = std::min(at_once, end - begin - done);
    for (std::int64_t i = 0; i < count; ++i)
      part.labels[static_cast<std::size_t>(done + i)] = set.read(
          begin + done + i,
          std::span(pixels).subspan(static_cast<std::size_t>(i * image), static_cast<std::size_t>(image)));
    engine_.store_images(part.first + done, std::span(pixels).first(static_cast<std::size_t>(count * image)));
  }
  part.is_there = true;
  return part;
}

}  // namespace paceline::train
