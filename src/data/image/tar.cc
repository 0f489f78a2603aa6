#include "data/image/tar.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

[[noreturn]] void fail_reading(const fs::path& path, const std::string& reason) {
  base::fail(
      ErrorKind::data,
      "{}: is not a complete, uncompressed tar archive ({}); a compressed one cannot be read in place: "
      "unpack it, or only decompress it (gunzip, unxz)",
      path.string(), reason);
}

/// "./a/b.jpg" as directory "a" and name "b.jpg".
std::pair<std::string, std::string> parts_of(std::string_view path) {
  while (path.starts_with("./") || path.starts_with("/")) path.remove_prefix(path.front() == '/' ? 1 : 2);
  return {std::string(before_last(path)), std::string(last_part(path))};
}

/// The path to which a link in the archive leads; empty if the member is no link. A hard link names a path in
/// the archive, a symbolic link a path relative to its own folder.
std::string target_of(const ArchiveMember& member, const std::string& directory) {
  const bool is_hard = !member.hard_link.empty();
  if (!is_hard && member.symlink.empty()) return "";
  const fs::path target = is_hard ? fs::path(member.hard_link) : fs::path(directory) / member.symlink;
  const auto [folder, name] = parts_of(target.lexically_normal().string());
  if (!is_hard && fs::path(member.symlink).is_absolute())
    return "/";  // no member of the archive has this name
  return folder.empty() ? name : folder + "/" + name;
}

/// Orders folders as a recursive walk does, which enters a folder before the next one beside it: '/' comes
/// before all letters.
bool walked_before(const std::string& a, const std::string& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto order = [](char c) { return c == '/' ? -1 : static_cast<int>(static_cast<unsigned char>(c)); };
    return order(x) < order(y);
  });
}

/// Refuses an archive without the zeros that end it, which may have lost members, and one that goes on after
/// them, whose members libarchive would not see: `begin` is the end of the last member.
void require_end(const fs::path& path, std::span<const std::uint8_t> whole, std::uint64_t begin) {
  const auto rest = whole.subspan(std::min<std::uint64_t>(begin, whole.size()));
  const auto zeros = static_cast<std::size_t>(
      std::ranges::find_if(rest, [](auto byte) { return byte != 0; }) - rest.begin());
  if (zeros < kTarBlock)
    base::fail(ErrorKind::data,
               "{}: the tar archive has no end mark, so it was cut short, or is still being written; copy or "
               "write it again",
               path.string());
  if (zeros < rest.size())
    base::fail(
        ErrorKind::data,
        "{}: the tar archive goes on after its end mark, at byte {}, as one of several that were joined; "
        "unpack it (tar --ignore-zeros) and pack it anew",
        path.string(), begin + zeros);
}

/// Gives links the data of their files; leaves out those that lead to none.
void resolve_links(TarContents& contents) {
  constexpr int kLongestChain = 16;
  auto& found = contents.members;
  const auto is_link = [](const TarMember& one) { return !one.leads_to.empty(); };
  if (std::none_of(found.begin(), found.end(), is_link)) return;
  std::map<std::string, const TarMember*> by_path;
  for (const auto& one : found) by_path[one.path()] = &one;
  for (auto& one : found) {
    const TarMember* at = &one;
    for (int links = 0; at != nullptr && !at->leads_to.empty(); ++links) {
      const auto next = by_path.find(at->leads_to);
      at = next == by_path.end() || links == kLongestChain ? nullptr : next->second;
    }
    if (at == &one) continue;
    if (at != nullptr) {
      one.begin = at->begin;
      one.bytes = at->bytes;
      one.leads_to.clear();
      continue;
    }
    if (contents.dangling_links++ == 0) contents.first_dangling_link = one.path();
    one.is_left_out = true;
  }
  std::erase_if(found, [](const TarMember& one) { return one.is_left_out; });
}

}  // namespace

TarContents read_tar(const fs::path& path, const FileBytes& file) {
  TarContents contents;
  const auto whole = file.bytes();
  const auto archive = read_archive(ArchiveForm::tar, whole);
  ArchiveMember member;
  auto next = ArchiveReader::Next::end;
  std::uint64_t end = 0;
  while ((next = archive->next(member)) == ArchiveReader::Next::member) {
    auto [directory, in_it] = parts_of(member.path);
    TarMember one{.directory = std::move(directory),
                  .name = std::move(in_it),
                  .begin = member.begin,
                  .bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, member.bytes))};
    end = one.begin;
    if (one.bytes == 0) one.leads_to = target_of(member, one.directory);
    if (one.leads_to.empty() && !member.is_file) continue;
    if (member.is_sparse) {
      ++contents.sparse;
      end = 0;  // its length is not that of its data
      continue;
    }
    if (one.begin > whole.size() || one.bytes > whole.size() - one.begin)
      fail_reading(path, "its end is missing");
    end += (one.bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
    contents.members.push_back(std::move(one));
  }
  file.require_read();
  if (next != ArchiveReader::Next::end) fail_reading(path, archive->reason());
  if (end > 0) require_end(path, whole, end);
  file.require_read();
  resolve_links(contents);
  return contents;
}

TarStore::TarStore(fs::path path) : path_(std::move(path)), file_(FileBytes::map(path_)) {
  auto contents = read_tar(path_, file_);
  auto& found = contents.members;
  passed_over_ = contents.sparse;
  dangling_links_ = contents.dangling_links;
  first_lost_link_ = std::move(contents.first_dangling_link);
  std::map<std::string, PassedOverCount> passed;
  for (const auto& one : found)
    if (!is_image_name(one.name) && !one.name.starts_with('.')) passed[one.directory].add(one.name);
  for (const auto& [directory, count] : passed) passed_over_in_.push_back(count.in(directory));
  passed_over_ += static_cast<std::int64_t>(
      std::erase_if(found, [](const TarMember& one) { return !is_image_name(one.name); }));

  std::stable_sort(found.begin(), found.end(), [](const TarMember& a, const TarMember& b) {
    return a.directory == b.directory ? a.name < b.name : walked_before(a.directory, b.directory);
  });
  // If a name occurs again, the later member replaces the earlier, as when the archive is unpacked.
  for (std::size_t i = 1; i < found.size(); ++i)
    found[i - 1].is_left_out =
        found[i].directory == found[i - 1].directory && found[i].name == found[i - 1].name;
  std::erase_if(found, [](const TarMember& one) { return one.is_left_out; });
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i == 0 || found[i].directory != found[i - 1].directory) listing_.add_directory(found[i].directory);
    listing_.add_image(static_cast<std::uint32_t>(listing_.directories().size() - 1), found[i].name);
    members_.push_back({found[i].begin, found[i].bytes});
  }
}

std::string TarStore::name(std::int64_t index) const {
  return path_.string() + ":" + listing_.path(static_cast<std::size_t>(index));
}

std::span<const std::uint8_t> TarStore::bytes(std::int64_t index, std::vector<std::uint8_t>&) const {
  const Member& member = members_[static_cast<std::size_t>(index)];
  const auto bytes = file_.bytes().subspan(member.begin, member.bytes);
  // Every page is read once here, since zeros in place of an unreadable page would look like a damaged image.
  constexpr std::size_t kPage = 4096;
  const volatile std::uint8_t* const begin = bytes.data();
  for (std::size_t at = 0; at < bytes.size(); at += kPage)
    [[maybe_unused]] const std::uint8_t read = begin[at];
  if (!bytes.empty()) [[maybe_unused]]
    const std::uint8_t read = begin[bytes.size() - 1];
  file_.require_read();
  return bytes;
}

TarWriter::TarWriter(fs::path path)
    : path_(std::move(path)), file_(path_), archive_(write_tar(file_.descriptor())) {}

void TarWriter::fail() const {
  base::fail(ErrorKind::data, "{}: cannot be written: {}; is the disk full, or the folder not yours?",
             path_.string(), archive_->reason());
}

void TarWriter::add(const std::string& name, std::span<const std::uint8_t> bytes) {
  if (!archive_->add(name, bytes)) fail();
}

void TarWriter::finish() {
  if (!archive_->finish()) fail();
  file_.commit();
}

}  // namespace paceline::data
