#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/file_bytes.h"
#include "data/image/listing.h"
#include "data/image/tar.h"
#include "data/shards/shards.h"
#include "data/spec.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

/// What a shard has of a key.
struct KeyFiles {
  const TarMember* image = nullptr;
  const TarMember* label = nullptr;
  bool has_json = false;
};

std::string shown_name(const TarMember& member) {
  constexpr std::size_t kMost = 200;
  return base::visible(member.path().substr(0, kMost));
}

template <typename... Args>
[[noreturn]] void fail_in(const fs::path& shard, fmt::format_string<Args...> format, Args&&... args) {
  base::fail(ErrorKind::data, "{}: {}", shard.string(), fmt::format(format, std::forward<Args>(args)...));
}

/// Reads labels out of the bytes of one shard.
class LabelReader {
 public:
  LabelReader(const fs::path& shard, const std::string& field, std::span<const std::uint8_t> whole)
      : shard_(shard), field_(field), whole_(whole) {}

  [[nodiscard]] std::string read(const TarMember& member) const {
    const auto text = as_chars(whole_.subspan(member.begin, member.bytes));
    std::string label = field_.empty() ? std::string(trimmed(text)) : from_json(member, text);
    constexpr std::size_t kLongest = 500;
    if (label.empty()) fail_in(shard_, "the label in '{}' is empty; write its class", shown_name(member));
    if (label.size() > kLongest || base::visible(label) != label)
      fail_in(shard_, "the label in '{}' is no number and no name of a class ('{}'); write its class",
              shown_name(member), base::visible(label.substr(0, 40)));
    return label;
  }

 private:
  [[nodiscard]] std::string from_json(const TarMember& member, std::string_view text) const {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    const auto found = json.is_object() ? json.find(field_) : json.end();
    if (!json.is_object() || found == json.end())
      fail_in(shard_, "'{}' is no JSON object with a field '{}'; name another: label=FIELD",
              shown_name(member), field_);
    if (found->is_number_integer()) return found->dump();
    if (found->is_string()) return std::string(trimmed(found->get<std::string>()));
    fail_in(shard_, "the field '{}' of '{}' is neither a whole number nor a text; name another: label=FIELD",
            field_, shown_name(member));
  }

  const fs::path& shard_;
  const std::string& field_;
  std::span<const std::uint8_t> whole_;
};

/// Collects the members of each key.
class Keys {
 public:
  Keys(const fs::path& shard, bool is_json) : shard_(shard), is_json_(is_json) {}

  /// False if the member is neither an image nor a label.
  bool add(const TarMember& member) {
    const auto dot = member.name.find('.');
    if (dot == std::string::npos || dot == 0) return false;
    const auto ending = base::lower_case(std::string_view(member.name).substr(dot + 1));
    const bool is_image = ending.find('.') == std::string::npos && is_image_name("x." + ending);
    const bool is_label = ending == (is_json_ ? "json" : "cls");
    if (!is_image && !is_label && ending != "json") return false;
    auto& files = files_[fmt::format("{}/{}", member.directory, member.name.substr(0, dot))];
    if (!is_image && !is_label) {
      files.has_json = true;
      return false;
    }
    const TarMember*& place = is_image ? files.image : files.label;
    if (place != nullptr)
      fail_in(
          shard_,
          "a key has two {}, '{}' and '{}'; a sample has one of each, and its key is the name up to the first dot",
          is_image ? "images" : "labels", shown_name(*place), shown_name(member));
    place = &member;
    return true;
  }

  /// The label of an image.
  [[nodiscard]] const TarMember& label_of(const TarMember& image) const {
    const auto dot = image.name.find('.');
    const auto& files = files_.at(fmt::format("{}/{}", image.directory, image.name.substr(0, dot)));
    if (files.label == nullptr)
      fail_in(
          shard_, "the image '{}' has no label {}.{}; {}", shown_name(image),
          base::visible(image.name.substr(0, dot)), is_json_ ? "json" : "cls",
          files.has_json && !is_json_ ? "its .json may have one: label=FIELD" : "write one, or remove it");
    return *files.label;
  }

  void require_images() const {
    for (const auto& [key, files] : files_)
      if (files.label != nullptr && files.image == nullptr)
        fail_in(shard_, "the label '{}' has no image; an image's name ends in {}", shown_name(*files.label),
                kImageEndings);
  }

 private:
  const fs::path& shard_;
  bool is_json_;
  std::unordered_map<std::string, KeyFiles> files_;
};

/// The same numbers in a manifest's form.
ShardMember as_listed(const fs::path& shard, const TarMember& member) {
  if (member.begin % kTarBlock != 0 || member.begin / kTarBlock > UINT32_MAX || member.bytes > UINT32_MAX)
    fail_in(shard, "'{}' lies at byte {} and has {} bytes; a shard has at most 2 TB, an image 4 GB",
            shown_name(member), member.begin, member.bytes);
  return {static_cast<std::uint32_t>(member.begin / kTarBlock), static_cast<std::uint32_t>(member.bytes)};
}

}  // namespace

ShardIndex list_shard(const fs::path& path, const std::string& field) {
  const auto file = FileBytes::map(path);
  const auto contents = read_tar(path, file);
  if (contents.dangling_links > 0)
    fail_in(path, "'{}' is a link that leads to no member; pack with tar --dereference",
            base::visible(contents.first_dangling_link));
  ShardIndex index{.field = field, .shards = {Shard{}}, .members = {}, .labels = {}, .texts = {}};
  auto& shard = index.shards.front();
  shard.others = contents.sparse;
  Keys keys(path, !field.empty());
  std::vector<const TarMember*> images;
  for (const auto& member : contents.members)
    if (!keys.add(member))
      ++shard.others;
    else if (is_image_name(member.name))
      images.push_back(&member);
  const LabelReader labels(path, field, file.bytes());
  std::unordered_map<std::string, std::uint32_t> numbers;
  for (const auto* image : images) {
    auto label = labels.read(keys.label_of(*image));
    const auto [at, is_new] = numbers.emplace(label, static_cast<std::uint32_t>(index.texts.size()));
    if (is_new) index.texts.push_back(std::move(label));
    index.members.push_back(as_listed(path, *image));
    index.labels.push_back(at->second);
  }
  keys.require_images();
  file.require_read();
  if (images.empty())
    fail_in(path, "holds no sample KEY.jpg with KEY.{}; an image's name ends in {}",
            field.empty() ? "cls" : "json", kImageEndings);
  shard.samples = static_cast<std::int64_t>(images.size());
  return index;
}

}  // namespace paceline::data
