#include "data/image/scan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/file_bytes.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr int kDeepest = 16;  // nested folders; more means a link that leads back

void enter(const fs::path& directory, const std::string& relative, int depth, FolderScan& scan) {
  if (depth > kDeepest)
    base::fail(ErrorKind::data,
               "{}: folders are nested more than {} deep, perhaps by a link to a folder above; remove it",
               directory.string(), kDeepest);
  // The time is read before the names: a change in between makes the manifest outdated, not wrong.
  scan.folders.push_back({.path = relative, .modified_ns = modified_ns(directory)});
  const std::size_t self = scan.folders.size() - 1;
  std::vector<std::string> images, folders;
  PassedOverCount passed;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    std::error_code unknown;  // a dangling link is neither
    if (name.front() == '.') continue;
    if (entry->is_directory(unknown))
      folders.push_back(std::move(name));
    else if (is_image_name(name))
      images.push_back(std::move(name));
    else if (name != kManifestName || depth > 0)
      passed.add(name);
  }
  if (error)
    base::fail(ErrorKind::data, "{}: the folder cannot be read: {}; check the path and its permissions",
               directory.string(), error.message());
  std::sort(images.begin(), images.end());
  std::sort(folders.begin(), folders.end());
  scan.folders[self].images = images.size();
  scan.passed_over += passed.files();
  if (passed.files() > 0) scan.passed_over_in.push_back(passed.in(relative));
  if (!images.empty()) {
    const auto number = scan.listing.add_directory(relative);
    for (const auto& name : images) scan.listing.add_image(number, name);
  }
  images = {};
  for (const auto& name : folders)
    enter(directory / name, relative.empty() ? name : relative + "/" + name, depth + 1, scan);
}

/// For a folder of a manifest, which has only their number in all.
void add_passed_over(const fs::path& top, const std::string& folder, FolderScan& scan) {
  PassedOverCount passed;
  std::error_code error;  // the folder's time was just read; without its names nothing is refused
  for (fs::directory_iterator entry(top / folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    const auto name = entry->path().filename().string();
    if (name.front() != '.' && name != kManifestName && !entry->is_directory(unknown)) passed.add(name);
  }
  if (passed.files() > 0) scan.passed_over_in.push_back(passed.in(folder));
}

constexpr std::string_view kFirstLine = "paceline-manifest-1";

/// A file that is being written; removed if that fails.
struct File {
  std::string path;
  base::Descriptor descriptor;
  bool is_whole = false;
  ~File() {
    if (descriptor.is_open() && !is_whole) ::unlink(path.c_str());
  }
};

void require_one_line(const fs::path& top, std::string_view name) {
  if (name.find('\n') != std::string_view::npos)
    base::fail(ErrorKind::data, "{}: the name '{}' holds a line end, which a manifest cannot; rename it",
               top.string(), name);
}

bool read_number(std::string_view& text, std::int64_t& value) {
  const auto number = base::take_number<std::int64_t>(text);
  value = number.value_or(value);
  return number.has_value();
}

bool take(std::string_view& line, std::string_view word) {
  if (!line.starts_with(word)) return false;
  line.remove_prefix(word.size());
  return true;
}

/// Whether it is a path below the top folder, as a scan writes it: not absolute and without "..".
bool is_below(std::string_view path) {
  return !path.starts_with('/') && (fmt::format("/{}/", path).find("/../") == std::string::npos);
}

/// False if the text is not a complete manifest.
bool parse(std::string_view text, FolderScan& scan) {
  std::string_view line;
  const auto next = [&] {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return false;  // a last line without its line end is incomplete
    line = text.substr(0, end);
    text.remove_prefix(end + 1);
    return true;
  };
  if (!next() || line != kFirstLine) return false;
  if (!next() || !take(line, "passed-over ") || !read_number(line, scan.passed_over)) return false;
  std::uint32_t directory = 0;
  while (next()) {
    if (line.find('\0') != std::string_view::npos) return false;  // no file system has such names
    if (take(line, "f ")) {
      if (scan.folders.empty() || !is_image_name(line) || line.find('/') != std::string_view::npos)
        return false;
      if (scan.folders.back().images++ == 0) directory = scan.listing.add_directory(scan.folders.back().path);
      scan.listing.add_image(directory, line);
    } else if (take(line, "d ")) {
      FolderScan::Folder folder;
      if (!read_number(line, folder.modified_ns) || !take(line, " ") || !is_below(line)) return false;
      folder.path = std::string(line);
      scan.folders.push_back(std::move(folder));
    } else if (take(line, "end ")) {
      std::int64_t images = -1;
      return read_number(line, images) && images == static_cast<std::int64_t>(scan.listing.size());
    } else {
      return false;
    }
  }
  return false;
}

}  // namespace

std::int64_t modified_ns(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return -1;
  return modified_ns(status);
}

FolderScan scan_folder(const fs::path& top) {
  FolderScan scan;
  enter(top, "", 0, scan);
  scan.listing.shrink();
  return scan;
}

// The manifest of a folder of images:
//
//     paceline-manifest-1
//     passed-over N
//     d MODIFIED PATH         a folder, MODIFIED in nanoseconds; its images follow
//     f NAME
//     end IMAGES              the last line: without it the file was not written to its end

FolderScan write_manifest(const fs::path& top) {
  const fs::path path = top / kManifestName;
  // Written in place, because renaming a file into the folder would change the folder's time that is noted in
  // it. An incomplete file has no last line and is ignored.
  File file{.path = path.string(),
            .descriptor = base::Descriptor(
                ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666))};
  if (!file.descriptor.is_open())
    base::fail(ErrorKind::data, "{}: cannot be written: {}; is the folder yours?", path.string(),
               std::system_category().message(errno));
  FolderScan scan = scan_folder(top);
  std::string text = fmt::format("{}\npassed-over {}\n", kFirstLine, scan.passed_over);
  std::size_t image = 0;
  for (const auto& folder : scan.folders) {
    require_one_line(top, folder.path);
    text += fmt::format("d {} {}\n", folder.modified_ns, folder.path);
    for (std::size_t i = 0; i < folder.images; ++i) {
      const auto name = scan.listing.name(image++);
      require_one_line(top, name);
      text.append("f ").append(name).append("\n");
    }
  }
  text += fmt::format("end {}\n", scan.listing.size());
  if (!write_all(file.descriptor.get(), std::as_bytes(std::span(text))))
    base::fail(ErrorKind::data, "{}: cannot be written: {}; is the disk full?", path.string(),
               base::reason_of_write(errno));
  file.is_whole = true;
  return scan;
}

std::optional<FolderScan> manifest_from(std::string_view text) {
  FolderScan scan;
  return parse(text, scan) ? std::optional(std::move(scan)) : std::nullopt;
}

std::optional<FolderScan> read_manifest(const fs::path& top, std::string& why_not) {
  const fs::path path = top / kManifestName;
  if (!base::is_file(path)) return std::nullopt;
  auto scan = manifest_from(base::read_file(path));
  if (!scan) {
    why_not = "it is damaged, or of another version";
    return std::nullopt;
  }
  for (const auto& folder : scan->folders)
    if (modified_ns(top / folder.path) != folder.modified_ns) {
      why_not = fmt::format("'{}' has changed since it was written", folder.path.empty() ? "." : folder.path);
      return std::nullopt;
    }
  scan->listing.shrink();
  for (const auto& folder : scan->folders)
    if (scan->passed_over > 0 && folder.images == 0) add_passed_over(top, folder.path, *scan);
  return scan;
}

}  // namespace paceline::data
