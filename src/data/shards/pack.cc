#include "data/shards/pack.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "data/image/decode.h"
#include "data/image/encode.h"
#include "data/image/tar.h"
#include "data/loader.h"
#include "data/shards/shards.h"
#include "data/spec.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr const char* kClassFile = "classes.txt";
constexpr int kMostPacked = 10'000;  ///< of a part: their names have four digits

/// The folder under the name that it has until it is complete. A lock on it says that somebody writes it.
class UnfinishedFolder {
 public:
  explicit UnfinishedFolder(fs::path target)
      : target_(std::move(target)), path_(target_.string() + ".paceline-partial") {
    base::require_directory_of(target_, "data pack");
    std::error_code error;
    if (const auto status = fs::symlink_status(target_, error);
        fs::exists(status) && !(fs::is_directory(status) && fs::is_empty(target_, error)))
      base::fail(ErrorKind::data,
                 "{}: is there already, and data pack overwrites nothing; remove it, or name another folder",
                 target_.string());
    fs::create_directory(path_, error);
    if (!error)
      opened_ = base::Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!opened_.is_open())
      base::fail(ErrorKind::data, "{}: cannot be made: {}; is its folder yours?", path_.string(),
                 error ? error.message() : std::strerror(errno));
    if (::flock(opened_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      base::fail(ErrorKind::data, "{}: another data pack writes it now; wait for it, or name another folder",
                 path_.string());
    for (const auto& left : fs::directory_iterator(path_, error)) fs::remove_all(left, error);
  }
  ~UnfinishedFolder() {
    std::error_code unimportant;  // a later packing removes what stays
    if (!is_complete_) fs::remove_all(path_, unimportant);
  }

  [[nodiscard]] const fs::path& path() const { return path_; }

  void complete() {
    std::error_code error;
    fs::rename(path_, target_, error);
    if (error)
      base::fail(ErrorKind::data, "{}: the complete shards in {} cannot get this name: {}; rename them",
                 target_.string(), path_.string(), error.message());
    is_complete_ = true;
  }

 private:
  fs::path target_, path_;
  base::Descriptor opened_;
  bool is_complete_ = false;
};

struct PackedPart {
  const char* name = "";
  const Dataset* set = nullptr;
  int shards = 0;
  bool is_shuffled = false;

  [[nodiscard]] std::int64_t first_of(int shard) const { return set->size() * shard / shards; }
  [[nodiscard]] std::string file(int shard) const { return fmt::format("{}-{:04}.tar", name, shard); }
  [[nodiscard]] std::string pattern() const {
    return shards == 1 ? file(0) : fmt::format("{}-{{0000..{:04}}}.tar", name, shards - 1);
  }
};

/// The parts that have samples. Validation and test have shards as large as those of the training part.
std::vector<PackedPart> packed_parts(const Source& source, const PackingOptions& options) {
  const auto samples = source.train->size();
  if (const auto most = std::min<std::int64_t>(samples, kMostPacked); options.shards > most)
    base::fail(ErrorKind::usage,
               "--shards {}: '{}' has {} training samples, and a shard holds at least one; write at most {}",
               options.shards, source.spec, samples, most);
  std::vector<PackedPart> parts;
  for (const auto& [name, set] :
       {std::pair{"train", source.train.get()}, std::pair{"validation", source.validation.get()},
        std::pair{"test", source.test.get()}}) {
    if (set == nullptr || set->size() == 0) continue;
    const auto in_proportion = (set->size() * options.shards + samples - 1) / samples;
    const bool trains = set == source.train.get();
    parts.push_back({.name = name,
                     .set = set,
                     .shards = static_cast<int>(std::min<std::int64_t>(in_proportion, kMostPacked)),
                     .is_shuffled = trains && !options.keeps_order});
  }
  return parts;
}

/// Bytes that the shards of `part` take, at most: of images that are scaled down an estimate.
std::int64_t bytes_needed(const PackedPart& part, const PackingOptions& options, base::ThreadPool& pool) {
  constexpr auto kOfSample = std::int64_t{4 * kTarBlock};  // two headers, a label, and filling
  const std::int64_t most_scaled = std::int64_t{3} * options.max_side * options.max_side / 4;
  constexpr int kPieces = 64;
  std::atomic<std::int64_t> bytes = 0;
  pool.run(kPieces, [&](int piece, int) {
    const auto end = part.set->size() * (piece + 1) / kPieces;
    for (auto i = part.set->size() * piece / kPieces; i < end; ++i) {
      const auto stored = part.set->stored_bytes(i);
      bytes += kOfSample + (options.max_side > 0 ? std::min(stored, most_scaled) : stored);
    }
  });
  return bytes;
}

void require_space(const std::vector<PackedPart>& parts, const fs::path& folder,
                   const PackingOptions& options, base::ThreadPool& pool) {
  std::int64_t needed = 0;
  for (const auto& part : parts) needed += bytes_needed(part, options, pool);
  const auto has = base::free_bytes(folder);
  if (has && *has < needed)
    base::fail(
        ErrorKind::data,
        "{}: the shards need about {:.1f} MB, but its disk has {:.1f} MB left; make room, name a folder "
        "on another disk, or scale large images down with --max-side",
        folder.string(), static_cast<double>(needed) / 1e6, static_cast<double>(*has) / 1e6);
}

/// What a thread needs to pack one sample after another.
struct PackScratch {
  std::vector<std::uint8_t> file, pixels;
  ImageDecoder decoder;
  RgbImage image;
};

/// The sample's file, and how its name ends.
struct PackedImage {
  std::span<const std::uint8_t> bytes;
  const char* ending = "png";
  bool is_scaled = false;
};

PackedImage image_to_pack(const Dataset& set, std::int64_t index, const PackingOptions& options,
                          PackScratch& scratch) {
  auto file = set.encoded(index, scratch.file);
  if (file.data() == nullptr) {
    scratch.pixels.resize(static_cast<std::size_t>(set.format().bytes()));
    set.read(index, scratch.pixels);
    scratch.file = to_png(set.format(), scratch.pixels);
    return {.bytes = scratch.file};
  }
  try {
    const auto header = scratch.decoder.read_header(file);
    const bool scales = options.max_side > 0 && std::max(header.height, header.width) > options.max_side;
    // Otherwise decoding only shows that it can be done: a file may break off behind its header.
    constexpr double kSmallest = 1.0 / 8;
    scratch.decoder.decode(file, header, scales ? 1 : kSmallest, scratch.image);
    if (!scales) return {.bytes = file, .ending = ending(header.kind)};
    scratch.pixels = scaled_jpeg(scratch.image, options.max_side, options.quality);
    return {.bytes = scratch.pixels, .ending = "jpg", .is_scaled = true};
  } catch (const BrokenImage& broken) {
    base::fail(
        ErrorKind::data,
        "{}: the image cannot be decoded: {}; replace it, or pack without such images: --bad-images skip",
        set.sample_name(index), broken.what());
  }
}

class Packing {
 public:
  Packing(const fs::path& folder, const PackingOptions& options, std::stop_token stop,
          const std::function<void(std::int64_t, std::int64_t)>& progress, std::int64_t all)
      : folder_(folder), options_(options), stop_(std::move(stop)), progress_(progress), all_(all) {}

  void write(const PackedPart& part, int shard) {
    const Sampler sampler(part.set->size(), 0, part.is_shuffled ? Order::shuffled : Order::as_stored);
    PackScratch scratch;
    TarWriter tar(folder_ / part.file(shard));
    for (auto at = part.first_of(shard); at < part.first_of(shard + 1); ++at) {
      if (stop_.stop_requested()) return;
      const auto index = sampler.index(0, at);
      const auto image = image_to_pack(*part.set, index, options_, scratch);
      const auto label = std::to_string(part.set->label(index));
      tar.add(fmt::format("{:08}.{}", index, image.ending), image.bytes);
      tar.add(fmt::format("{:08}.cls", index),
              {reinterpret_cast<const std::uint8_t*>(label.data()), label.size()});
      scaled_ += image.is_scaled ? 1 : 0;
      const std::lock_guard lock(mutex_);
      progress_(++done_, all_);
    }
    tar.finish();
  }

  [[nodiscard]] std::int64_t scaled() const { return scaled_; }

 private:
  const fs::path& folder_;
  const PackingOptions& options_;
  const std::stop_token stop_;
  const std::function<void(std::int64_t, std::int64_t)>& progress_;
  const std::int64_t all_;
  std::atomic<std::int64_t> scaled_ = 0;
  std::mutex mutex_;
  std::int64_t done_ = 0;
};

void write_classes(const Source& source, const fs::path& path) {
  std::string text;
  for (const auto& name : source.class_names) {
    if (name.find_first_of("\r\n") != std::string::npos)
      base::fail(ErrorKind::data,
                 "the name of class '{}' has a line end, and {} holds a class a line; rename it",
                 base::visible(name), kClassFile);
    text += name + "\n";
  }
  base::write_file(path, text);
}

std::string joined(const std::vector<float>& values) {
  return base::joined(values, ":", [](float value) { return fmt::format("{}", value); });
}

/// What opens the shards as `source` was opened: its options about sizes and augmentation, and of arrays
/// their size and normalisation, which are not those of images in files.
std::string spec_of(const Source& source, const fs::path& out, const std::vector<PackedPart>& parts) {
  std::string spec = fmt::format("shards:{}", (out / parts.front().pattern()).string());
  for (const auto& part : parts)
    if (part.set != source.train.get()) spec += fmt::format(",{}={}", part.name, part.pattern());
  spec += fmt::format(",classes={}", kClassFile);
  const auto given = parse_spec(source.spec);
  for (const char* key : {"size", "eval-size", "eval-resize", "crop-area", "jitter", "flip"})
    if (const auto value = given.option(key); value && source.crop_area > 0)
      spec += fmt::format(",{}={}", key, *value);
  const auto& format = source.train->format();
  if (source.crop_area == 0)
    spec += fmt::format(",size={}x{},eval-resize=fit,flip={},mean={},std={}", format.height, format.width,
                        source.flip == Flip::none ? 0 : 1, joined(source.mean), joined(source.stddev));
  else
    for (const char* key : {"mean", "std"})
      if (const auto value = given.option(key)) spec += fmt::format(",{}={}", key, *value);
  return spec;
}

void require_name(const fs::path& out) {
  const auto text = out.string();
  if (const auto bad = text.find_first_of(",{}*?["); bad != std::string::npos || text.find("::") != text.npos)
    base::fail(ErrorKind::usage,
               "{}: the spec of the shards cannot hold '{}' in the name of a folder; name another", text,
               bad == std::string::npos ? "::" : text.substr(bad, 1));
}

}  // namespace

std::optional<PackedShards> pack_shards(
    const Source& source, const fs::path& given, const PackingOptions& options, std::stop_token stop,
    const std::function<void(std::int64_t done, std::int64_t all)>& progress) {
  if (source.synthetic)
    base::fail(ErrorKind::usage, "'{}' is drawn, and nothing would say so of its shards; read it as it is",
               source.spec);
  const auto out = given.has_filename() ? given : given.parent_path();
  require_name(out);
  const auto parts = packed_parts(source, options);
  UnfinishedFolder folder(out);
  base::ThreadPool pool(options.threads);
  require_space(parts, folder.path(), options, pool);
  write_classes(source, folder.path() / kClassFile);

  struct Task {
    const PackedPart* part;
    int shard;
  };
  std::vector<Task> tasks;
  PackedShards packed;
  for (const auto& part : parts) {
    packed.images += part.set->size();
    for (int shard = 0; shard < part.shards; ++shard) tasks.push_back({&part, shard});
  }
  Packing packing(folder.path(), options, stop, progress, packed.images);
  std::atomic<bool> failed = false;
  pool.run(static_cast<int>(tasks.size()), [&](int i, int) {
    if (failed || stop.stop_requested()) return;
    try {
      packing.write(*tasks[static_cast<std::size_t>(i)].part, tasks[static_cast<std::size_t>(i)].shard);
    } catch (...) {
      failed = true;  // the others need not go on
      throw;
    }
  });
  if (stop.stop_requested()) return std::nullopt;
  for (const auto& [part, shard] : tasks)
    packed.bytes += static_cast<std::int64_t>(fs::file_size(folder.path() / part->file(shard)));
  for (const auto& part : parts) {
    std::vector<fs::path> paths;
    for (int shard = 0; shard < part.shards; ++shard) paths.push_back(folder.path() / part.file(shard));
    (void)open_shard_index(paths, "", options.threads);
  }
  folder.complete();
  packed.files = static_cast<int>(tasks.size());
  packed.scaled = packing.scaled();
  packed.spec = spec_of(source, out, parts);
  return packed;
}

}  // namespace paceline::data
