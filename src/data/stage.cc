#include "data/stage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "data/file_bytes.h"
#include "data/shards/shards.h"
#include "data/spec.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr std::string_view kPartial = ".paceline-partial-";

std::array<timespec, 2> times_of(std::int64_t modified_ns) {
  const timespec time{.tv_sec = modified_ns / 1'000'000'000, .tv_nsec = modified_ns % 1'000'000'000};
  return {time, time};
}

/// A folder of the data set, and what of it is copied where.
struct StagePlace {
  fs::path from, to;
  bool is_whole = false;  ///< all that is in it; otherwise single files
};

struct StageFile {
  std::size_t place = 0;
  std::string below;  ///< its path below the place
  std::int64_t bytes = 0, modified_ns = 0;
  auto operator<=>(const StageFile&) const = default;
};

/// The files of a spec, and the spec of their copies.
class StageList {
 public:
  StageList(const std::string& text, fs::path to) : spec_(parse_spec(text)), to_(std::move(to)) {
    if (spec_.directory.empty())
      base::fail(ErrorKind::usage, "data stage copies the files of a data set, but '{}' has none", text);
    staged_ = spec_.name + ":" +
              (spec_.name == "shards" ? pattern(spec_.directory) : path(fs::path(spec_.directory)));
    auto items = split_text(text, ",");
    items.erase(items.begin());
    for (const auto& item : items) {
      const auto key = item.substr(0, item.find('='));
      staged_ += fmt::format(",{}={}", key, option(key));
    }
    std::ranges::sort(files_);
    const auto again = std::ranges::unique(files_);
    files_.erase(again.begin(), again.end());
  }

  [[nodiscard]] const std::string& spec() const { return staged_; }
  [[nodiscard]] const std::vector<StagePlace>& places() const { return places_; }
  [[nodiscard]] const std::vector<StageFile>& files() const { return files_; }
  [[nodiscard]] fs::path from(const StageFile& file) const { return places_[file.place].from / file.below; }
  [[nodiscard]] fs::path to(const StageFile& file) const { return places_[file.place].to / file.below; }
  /// Of whole folders: each folder, with the time of the original, those inside before those around them.
  [[nodiscard]] const std::vector<std::pair<fs::path, std::int64_t>>& folder_times() const {
    return folders_;
  }
  /// Patterns of copies that match by name, so that no other file may lie there.
  [[nodiscard]] const std::vector<std::string>& globs() const { return globs_; }

 private:
  std::size_t place(const fs::path& folder, bool is_whole) {
    const auto from = fs::absolute(folder).lexically_normal();
    const auto whole = from.has_filename() ? from : from.parent_path();
    const auto found = std::ranges::find(places_, whole, &StagePlace::from);
    if (found != places_.end()) {
      found->is_whole = found->is_whole || is_whole;
      return static_cast<std::size_t>(found - places_.begin());
    }
    constexpr std::size_t kDigits = 8;
    const auto hash = base::sha256_of_text(whole.string());
    auto name = whole.filename().string();
    std::ranges::replace_if(
        name, [](char c) { return std::string_view(",:{}*?[]").find(c) != std::string_view::npos; }, '_');
    const auto below = to_.lexically_relative(whole);
    if (is_whole && !below.empty() && *below.begin() != "..")
      base::fail(ErrorKind::usage, "--to {}: is inside of {}, which is to be copied; name another directory",
                 to_.string(), whole.string());
    places_.push_back({whole, to_ / fmt::format("{}-{}", name, hash.substr(0, kDigits)), is_whole});
    return places_.size() - 1;
  }

  void add_file(std::size_t in, const fs::path& below) {
    const auto file = places_[in].from / below;
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0)
      base::fail(ErrorKind::data, "{}: cannot be read: {}", file.string(), std::strerror(errno));
    if (S_ISREG(status.st_mode)) files_.push_back({in, below.string(), status.st_size, modified_ns(status)});
  }

  void add_folder(std::size_t in) {
    constexpr int kDeepest = 16;  // as scan_folder(): links may lead in a circle
    std::error_code error;
    const auto& top = places_[in].from;
    const auto note_time = [&](const fs::path& folder) {
      struct stat status {};
      if (::stat(folder.c_str(), &status) == 0)
        folders_.emplace_back(places_[in].to / folder.lexically_relative(top), modified_ns(status));
    };
    const auto first = folders_.size();
    note_time(top);
    fs::recursive_directory_iterator entry(top, fs::directory_options::follow_directory_symlink, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      if (entry.depth() >= kDeepest)
        base::fail(ErrorKind::data, "{}: folders are at most {} deep; does a link lead in a circle?",
                   entry->path().string(), kDeepest);
      if (entry->path().filename().string().starts_with('.')) {
        entry.disable_recursion_pending();
        continue;
      }
      std::error_code dangling;
      const auto status = fs::status(entry->path(), dangling);
      if (fs::is_directory(status))
        note_time(entry->path());
      else if (fs::is_regular_file(status))
        add_file(in, entry->path().lexically_relative(top));
    }
    if (error) base::fail(ErrorKind::data, "{}: cannot be read: {}", top.string(), error.message());
    std::reverse(folders_.begin() + static_cast<std::ptrdiff_t>(first), folders_.end());
  }

  /// The copy's path of a file or a whole folder.
  std::string path(const fs::path& given) {
    if (base::is_folder(given)) {
      const auto in = place(given, true);
      add_folder(in);
      return places_[in].to.string();
    }
    if (!base::is_file(given))
      base::fail(ErrorKind::data, "data '{}': there is neither a file nor a folder {}", spec_.text,
                 given.string());
    const auto in = place(fs::absolute(given).lexically_normal().parent_path(), false);
    add_file(in, given.filename());
    return (places_[in].to / given.filename()).string();
  }

  /// The copies' pattern, and the manifests beside the first shard.
  std::string pattern(const std::string& text) {
    std::vector<std::string> copies;
    for (const auto& one : split_text(text, "::")) {
      const auto paths = shard_paths(one);
      const auto fixed = one.substr(0, std::min(one.find_first_of("{*?["), one.size()));
      const auto slash = fixed.rfind('/');
      const fs::path folder = slash == std::string::npos ? "." : one.substr(0, slash + 1);
      const auto in = place(folder, false);
      for (const auto& shard : paths) add_file(in, shard.lexically_relative(folder));
      for (const auto& beside : base::entries_of(folder))
        if (const auto name = beside.path().filename().string();
            name.starts_with("paceline-shards-") && name.ends_with(".index"))
          add_file(in, name);
      const auto tail = slash == std::string::npos ? one : one.substr(slash + 1);
      copies.push_back((places_[in].to / tail).string());
      if (tail.find_first_of("*?[") != std::string::npos) globs_.push_back(copies.back());
    }
    return base::joined(copies, "::");
  }

  /// The value of an option for the copies: another one where it names files.
  std::string option(const std::string& key) {
    const auto& value = spec_.options.at(key);
    const bool is_of_shards = spec_.name == "shards";
    if (key != "labels" && key != "test" && !(is_of_shards && (key == "validation" || key == "classes")))
      return value;
    const fs::path top =
        is_of_shards ? shard_paths(spec_.directory).front().parent_path() : fs::path(spec_.directory);
    if (is_of_shards && key != "classes") {
      const auto beside = (top / value).string();
      try {
        (void)shard_paths(beside);
      } catch (const base::Error&) {
        return pattern(value);
      }
      return pattern(beside);
    }
    const bool is_inside = fs::path(value).is_relative() && base::is_file(top / value);
    if (is_inside) return is_of_shards ? path(top / value) : value;
    return base::is_file(value) ? path(value) : value;
  }

  Spec spec_;
  fs::path to_;
  std::string staged_;
  std::vector<StagePlace> places_;
  std::vector<StageFile> files_;
  std::vector<std::pair<fs::path, std::int64_t>> folders_;
  std::vector<std::string> globs_;
};

/// A lock of the directory `to` for the processes of this host.
class StageLock {
 public:
  StageLock(const fs::path& to, const StageOptions& options) {
    const auto file = to / ".paceline-stage.lock";
    constexpr mode_t kForAll = 0666;  // what the umask leaves of it
    file_ = base::Descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kForAll));
    if (!file_.is_open())
      base::fail(ErrorKind::data, "{}: cannot be written: {}; name a directory of yours: --to", file.string(),
                 std::strerror(errno));
    for (bool has_said = false; ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0;) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return;  // a file system without locks
      if (!std::exchange(has_said, true)) options.waits();
      if (options.stop.stop_requested()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    is_held_ = true;
  }
  [[nodiscard]] bool is_held() const { return is_held_; }

 private:
  base::Descriptor file_;
  bool is_held_ = false;
};

/// Two open files, and the copy's name until it is complete.
class FileCopy {
 public:
  FileCopy(const fs::path& from, const fs::path& to) : from_(from), to_(to) {
    temporary_ = to.parent_path() / fmt::format("{}{}-{}", kPartial, ::getpid(), to.filename().string());
    source_ = base::Descriptor(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
    if (!source_.is_open()) fail(from_, "read");
    constexpr mode_t kMode = 0666;
    copy_ = base::Descriptor(
        ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kMode));
    if (!copy_.is_open()) fail(temporary_, "written");
  }
  ~FileCopy() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  /// Returns false if it was asked to stop.
  bool copy(const StageFile& file, std::vector<std::uint8_t>& buffer, const std::stop_token& stop,
            const std::function<void(std::int64_t)>& copied) {
    base::Sha256 written, read_back;
    std::int64_t bytes = 0;
    for (;;) {
      if (stop.stop_requested()) return false;
      const auto piece = read(source_, from_, bytes, buffer);
      if (piece.empty()) break;
      written.update(piece);
      if (!write_all(copy_.get(), piece)) fail(to_, "written");
      bytes += std::ssize(piece);
      copied(std::ssize(piece));
    }
    struct stat now {};
    if (::fstat(source_.get(), &now) != 0 || now.st_size != file.bytes ||
        modified_ns(now) != file.modified_ns || bytes != file.bytes)
      base::fail(ErrorKind::data,
                 "{}: changed while it was copied ({} bytes, then {}); stage again when nobody writes it",
                 from_.string(), file.bytes, now.st_size);
    std::int64_t at = 0;
    for (auto piece = read(copy_, to_, 0, buffer); !piece.empty(); piece = read(copy_, to_, at, buffer)) {
      read_back.update(piece);
      at += std::ssize(piece);
    }
    if (written.digits() != read_back.digits())
      base::fail(ErrorKind::data,
                 "{}: reads otherwise than it was written (SHA-256); is this disk broken? Name another: --to",
                 to_.string());
    if (::futimens(copy_.get(), times_of(file.modified_ns).data()) != 0) fail(to_, "given its time");
    if (::rename(temporary_.c_str(), to_.c_str()) != 0) fail(to_, "written");
    temporary_.clear();
    return true;
  }

 private:
  static std::span<const std::byte> read(const base::Descriptor& file, const fs::path& path, std::int64_t at,
                                         std::span<std::uint8_t> buffer) {
    const auto count = read_at(file.get(), static_cast<std::uint64_t>(at), buffer);
    if (count < 0) fail(path, "read");
    return std::as_bytes(buffer.first(static_cast<std::size_t>(count)));
  }
  [[noreturn]] static void fail(const fs::path& path, const char* what) {
    base::fail(ErrorKind::data, "{}: cannot be {}: {}", path.string(), what, std::strerror(errno));
  }

  const fs::path &from_, &to_;
  fs::path temporary_;
  base::Descriptor source_, copy_;
};

bool is_there(const StageList& list, const StageFile& file) {
  struct stat status {};
  return ::lstat(list.to(file).c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_size == file.bytes && modified_ns(status) == file.modified_ns;
}

/// Copies `files`; returns false if it was asked to stop.
bool copy_files(const StageList& list, const std::vector<const StageFile*>& files, std::int64_t bytes,
                const StageOptions& options) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  base::ThreadPool pool(options.threads);
  std::vector<std::vector<std::uint8_t>> buffers(static_cast<std::size_t>(pool.threads()));
  std::atomic<bool> ends = false;
  std::mutex mutex;
  std::int64_t done = 0;
  pool.run(static_cast<int>(files.size()), [&](int i, int thread) {
    if (ends) return;
    const auto& file = *files[static_cast<std::size_t>(i)];
    auto& buffer = buffers[static_cast<std::size_t>(thread)];
    buffer.resize(kPiece);
    try {
      const auto from = list.from(file), to = list.to(file);
      fs::create_directories(to.parent_path());
      const bool is_whole = FileCopy(from, to).copy(file, buffer, options.stop, [&](std::int64_t count) {
        const std::lock_guard lock(mutex);
        options.progress(done += count, bytes);
      });
      if (!is_whole) ends = true;
    } catch (...) {
      ends = true;  // the others need not go on
      throw;
    }
  });
  return !ends;
}

/// Removes what killed calls left, and what the set no longer has. Returns how many files of the latter.
std::int64_t sweep(const StageList& list) {
  std::int64_t removed = 0;
  std::vector<fs::path> copies;
  for (const auto& file : list.files()) copies.push_back(list.to(file));
  std::ranges::sort(copies);
  const auto remove_unless_listed = [&](const fs::path& path) {
    std::error_code error;
    if (!std::ranges::binary_search(copies, path) && fs::remove(path, error)) ++removed;
  };
  for (const auto& place : list.places()) {
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::recursive_directory_iterator entry(place.to, error); !error && entry != end(entry);
         entry.increment(error))
      if (!fs::is_directory(entry->symlink_status())) found.push_back(entry->path());
    for (const auto& path : found)
      if (path.filename().string().starts_with(kPartial))
        fs::remove(path, error);
      else if (place.is_whole)
        remove_unless_listed(path);
  }
  for (const auto& glob : list.globs()) try {
      for (const auto& path : shard_paths(glob)) remove_unless_listed(path);
    } catch (const base::Error&) {
      continue;  // there is none yet
    }
  return removed;
}

}  // namespace

std::optional<StagedData> stage(const std::string& spec, const fs::path& given, const StageOptions& options) {
  const auto absolute = fs::absolute(given).lexically_normal();
  const auto to = absolute.has_filename() ? absolute : absolute.parent_path();
  if (const auto bad = to.string().find_first_of(",{}*?["); bad != std::string::npos)
    base::fail(ErrorKind::usage, "--to {}: a spec cannot hold '{}' in a path; name another directory",
               to.string(), to.string()[bad]);
  std::error_code error;
  fs::create_directories(to, error);
  if (error)
    base::fail(ErrorKind::data, "--to {}: cannot be made: {}; name a directory of yours", to.string(),
               error.message());
  const StageLock lock(to, options);
  if (options.stop.stop_requested()) return std::nullopt;
  const StageList list(spec, to);
  StagedData staged{.spec = list.spec(), .files = static_cast<std::int64_t>(list.files().size())};
  std::vector<const StageFile*> missing;
  for (const auto& file : list.files()) {
    staged.bytes += file.bytes;
    if (is_there(list, file)) continue;
    missing.push_back(&file);
    staged.copied_bytes += file.bytes;
  }
  staged.copied = static_cast<std::int64_t>(missing.size());
  if (lock.is_held()) staged.removed = sweep(list);
  if (const auto has = base::free_bytes(to); has && *has < staged.copied_bytes)
    base::fail(
        ErrorKind::data,
        "--to {}: {:.1f} MB are to be copied, but its disk has {:.1f} MB left; name another directory, "
        "or read the data where they are",
        to.string(), static_cast<double>(staged.copied_bytes) / 1e6, static_cast<double>(*has) / 1e6);
  if (!copy_files(list, missing, staged.copied_bytes, options)) return std::nullopt;
  // So that the list of a folder that was written once (data manifest) holds for its copy.
  for (const auto& [folder, modified_ns] : list.folder_times())
    (void)::utimensat(AT_FDCWD, folder.c_str(), times_of(modified_ns).data(), 0);
  return staged;
}

}  // namespace paceline::data
