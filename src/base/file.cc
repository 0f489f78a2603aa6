#include "base/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace paceline::base {
namespace {

namespace fs = std::filesystem;

constexpr int kLongestChain = 40;  // of symbolic links, the limit of Linux
constexpr std::string_view kMark = ".paceline-partial-", kRandom = "XXXXXX";  // random letters

/// `in_place`: the old contents are not preserved.
[[noreturn]] void fail_write(const fs::path& path, int error, bool in_place = false) {
  throw WriteError(fmt::format("{}: cannot be written: {}{}", path.string(), reason_of_write(error),
                               in_place ? "" : "; the previous file, if any, is untouched"),
                   error);
}

/// Whether somebody else may have put a link here for this user to follow, as into /tmp: the directory is
/// everybody's, and the link is neither this user's, nor root's, nor of whom the directory is (the rule of
/// Linux's protected_symlinks).
bool is_planted(const fs::path& parent, const struct stat& link) {
  struct stat directory {};
  if (::stat(parent.empty() ? "." : parent.c_str(), &directory) != 0) return false;
  const bool is_everybodys = (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & S_IWOTH) != 0;
  return is_everybodys && link.st_uid != ::geteuid() && link.st_uid != 0 && link.st_uid != directory.st_uid;
}

/// Where `path` leads from the directory `at`, which is no link: each link on the way is followed, the last
/// one too. What does not exist yet stays as it is. `links`: followed so far.
fs::path follow_links(fs::path at, const fs::path& path, int& links) {
  if (path.is_absolute()) at = path.root_path();
  for (const auto& name : path.relative_path()) {
    const auto next = at / name;
    struct stat link {};
    if (name.empty() || ::lstat(next.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) {
      at = next;
      continue;
    }
    if (is_planted(at, link))
      fail(
          ErrorKind::data,
          "{}: is a symbolic link of another user (uid {}) in a directory of everybody, which is not followed, since it "
          "may lead to any file of yours; remove it, or name another place",
          next.string(), link.st_uid);
    std::error_code failed;
    const auto target = fs::read_symlink(next, failed);
    if (++links > kLongestChain) fail_write(path, ELOOP);
    at = failed ? next : follow_links(std::move(at), target, links);  // creating the file reports the error
  }
  return at;
}

/// The descriptor of this process that `path` names, such as /dev/stdout or /dev/fd/N; it may be a file to
/// which a shell appends and others write. Empty if it names none.
std::optional<int> own_descriptor(fs::path path) {
  const auto own = fs::path("/proc") / std::to_string(::getpid()) / "fd";
  for (int links = 0; links < kLongestChain; ++links) {
    std::error_code failed;
    if (!fs::is_symlink(fs::symlink_status(path, failed))) return std::nullopt;
    const auto name = path.filename().string();
    if (path.has_parent_path() && fs::canonical(path.parent_path(), failed) == own)
      return std::stoi(name);  // all names there are numbers
    const auto target = fs::read_symlink(path, failed);
    if (failed) return std::nullopt;
    path = path.parent_path() / target;
  }
  return std::nullopt;
}

/// Opens an existing path without creating or truncating it. Waits a moment for the reader of a FIFO, but not
/// forever.
Descriptor open_in_place(const fs::path& path) {
  constexpr int kTries = 200;
  constexpr timespec kBetween{.tv_sec = 0, .tv_nsec = 50'000'000};
  for (int tried = 0;; ++tried) {
    Descriptor opened(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (opened.is_open()) {
      ::fcntl(opened.get(), F_SETFL, ::fcntl(opened.get(), F_GETFL) & ~O_NONBLOCK);
      return opened;
    }
    struct stat found {};
    const int error = errno;
    const bool is_fifo = ::stat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode);
    if (error == ENXIO && is_fifo && tried == kTries)
      fail(ErrorKind::data,
           "{}: no program has opened this FIFO for reading within 10 s; start its reader first",
           path.string());
    if (error != EINTR && !(error == ENXIO && is_fifo)) fail_write(path, error, true);
    ::nanosleep(&kBetween, nullptr);
  }
}

/// Creates a file beside `path` whose name nobody has, and sets `name` to it. None and errno if it cannot be
/// created. The umask decides on its mode, unless it replaces a file, whose mode it gets in the end.
Descriptor create_beside(const fs::path& path, std::string& name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  constexpr mode_t kNew = 0666, kReplaces = 0600;
  struct stat before {};
  const mode_t mode = ::stat(path.c_str(), &before) == 0 ? kReplaces : kNew;
  while (true) {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof random))
      random = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    name = path.string().append(kMark);
    for (std::size_t i = 0; i < kRandom.size(); ++i, random /= kLetters.size())
      name += kLetters[random % kLetters.size()];
    Descriptor created(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (created.is_open() || (errno != EEXIST && errno != EINTR)) return created;
  }
}

/// Removes temporary files that killed writers of `path` have left.
void remove_abandoned(const fs::path& path) {
  const std::string begin = path.filename().string() + std::string(kMark);
  for (const auto& entry : entries_of(path.has_parent_path() ? path.parent_path() : ".")) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with(begin) || name.size() != begin.size() + kRandom.size()) continue;
    const Descriptor left(::open(entry.path().c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (left.is_open() && ::flock(left.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
  }
}

/// Syncs the names in `folder`, since otherwise a renamed file may have its old name after a power loss.
/// Returns 0 or an errno. File systems that cannot sync directories keep the order of names themselves.
int sync_directory(const fs::path& folder) {
  const Descriptor opened(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return 0;  // the folder may be writable but not readable; nothing more can be done
  const int failed = ::fsync(opened.get()) == 0 ? 0 : errno;
  return failed == EINVAL || failed == ENOTSUP || failed == EROFS || failed == EBADF ? 0 : failed;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// How long to wait for the first data of a FIFO; a shell's <(...) writes at once.
constexpr std::chrono::seconds kPatience{10};

/// For a FIFO: waits for its first bytes, then makes reads blocking. Does nothing for other files.
void wait_for_writer(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  const auto end = Clock::now() + kPatience;
  constexpr int kLookMs = 100;
  pollfd look{.fd = descriptor, .events = POLLIN, .revents = 0};
  // POLLHUP: the writer has closed it. It is not reported before the first writer opens it.
  while (::poll(&look, 1, kLookMs) <= 0 || (look.revents & (POLLIN | POLLHUP)) == 0) {
    if (Clock::now() >= end)
      fail(ErrorKind::data,
           "{}: cannot be read: it is a FIFO, and no program has written to it for {} s; give a file, or "
           "start the writer first",
           path.string(), kPatience.count());
  }
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
}

/// O_NONBLOCK: otherwise open() of a FIFO blocks until somebody writes.
Descriptor open_to_read(const fs::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) fail(ErrorKind::data, "{}: cannot be read: {}", path.string(), std::strerror(errno));
  return file;
}

std::string read_all(const Descriptor& file, const fs::path& path, std::int64_t longest) {
  std::string bytes;
  char block[1 << 16];
  while (true) {
    const ssize_t count = ::read(file.get(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(ErrorKind::data, "{}: cannot be read: {}", path.string(), std::strerror(errno));
    if (count == 0) return bytes;
    if (static_cast<std::int64_t>(bytes.size()) + count > longest)
      fail(ErrorKind::data, "{}: is larger than {} bytes, the most that is read of such a file",
           path.string(), longest);
    bytes.append(block, static_cast<std::size_t>(count));
  }
}

}  // namespace

fs::path end_of_links(const fs::path& path) {
  int links = 0;
  return follow_links({}, path, links);
}

bool is_written_in_place(const fs::path& path) {
  if (own_descriptor(path)) return true;
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

Replacement::Replacement(fs::path path) : path_(std::move(path)) {
  auto end = end_of_links(path_);
  if (is_written_in_place(path_)) {
    const auto own = own_descriptor(path_);
    file_ = own ? Descriptor(::fcntl(*own, F_DUPFD_CLOEXEC, 0)) : open_in_place(path_);
    if (!file_.is_open()) fail_write(path_, errno, true);
    return;
  }
  path_ = std::move(end);
  remove_abandoned(path_);
  for (;;) {
    file_ = create_beside(path_, temporary_);
    if (!file_.is_open()) fail_write(path_, errno);
    while (::flock(file_.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    // Another process may have removed it as abandoned just before it was locked.
    struct stat found {};
    if (::fstat(file_.get(), &found) != 0 || found.st_nlink > 0) return;
  }
}

Replacement::~Replacement() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void Replacement::write(std::span<const std::byte> bytes) {
  const NoSigpipe no_signal;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_write(path_, errno, is_in_place());
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void Replacement::commit() {
  if (is_in_place()) {
    // A device may fail only now; FIFOs and most devices have nothing to sync.
    if (::fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
      fail_write(path_, errno, true);
    if (::close(file_.release()) != 0 && errno != EINTR) fail_write(path_, errno, true);
    return;
  }
  struct stat before {};
  constexpr mode_t kAll = 07777;
  if (::stat(path_.c_str(), &before) == 0) ::fchmod(file_.get(), before.st_mode & kAll);
  // The sync reports every error that a close could. The file is closed last, so that the lock lasts until
  // the rename.
  if (::fsync(file_.get()) != 0) fail_write(path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_write(path_, errno);
  temporary_.clear();
  file_.close();
  if (const int failed = sync_directory(path_.parent_path()); failed != 0)
    throw WriteError(
        fmt::format("{}: is written, but may be lost if the power fails: its directory cannot be "
                    "synced: {}",
                    path_.string(), reason_of_write(failed)),
        failed);
}

std::filesystem::path cache_directory() {
  if (const auto own = variable("PACELINE_CACHE"); !own.empty()) return own;
  if (const auto xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return fs::path(xdg) / "paceline";
  if (const auto home = variable("HOME"); !home.empty()) return fs::path(home) / ".cache" / "paceline";
  return "paceline-cache";
}

void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& writer) {
  end_of_links(path);
  if (path.has_parent_path()) {
    std::error_code ignored;  // the open below then fails with the reason
    std::filesystem::create_directories(path.parent_path(), ignored);
  }
  Replacement file(path);
  writer([&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  write_file(path, [&](const Sink& sink) { sink(std::as_bytes(std::span(bytes))); });
}

void require_directory_of(const std::filesystem::path& file, std::string_view option) {
  end_of_links(file);
  const auto directory = file.parent_path();
  if (directory.empty() || is_folder(directory)) return;
  fail(ErrorKind::data, "{} {}: {} {}; make it first, or give another file", option, file.string(),
       is_there(directory) ? "this is not a directory:" : "there is no directory", directory.string());
}

bool is_there(const fs::path& path) {
  std::error_code unknown;
  return fs::exists(path, unknown);
}

bool is_file(const fs::path& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown);
}

bool is_folder(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code unreadable;
  for (fs::directory_iterator entry(folder, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable))
    entries.push_back(*entry);
  return entries;
}

std::optional<std::string> first_line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? std::optional(line) : std::nullopt;
}

std::optional<std::int64_t> free_bytes(const std::filesystem::path& path) {
  std::error_code unknown;
  auto there = std::filesystem::absolute(path, unknown);
  while (!there.empty() && there != there.root_path() && !is_there(there)) there = there.parent_path();
  const auto space = std::filesystem::space(there, unknown);
  if (unknown) return std::nullopt;
  return static_cast<std::int64_t>(std::min<std::uintmax_t>(space.available, INT64_MAX));
}

std::string read_file(const std::filesystem::path& path) {
  const Descriptor file = open_to_read(path);
  wait_for_writer(file.get(), path);
  return read_all(file, path, INT64_MAX);
}

std::string read_regular_file(const std::filesystem::path& path, std::int64_t longest) {
  const Descriptor file = open_to_read(path);
  struct stat found {};
  if (::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode))
    fail(ErrorKind::data, "{}: is no regular file", path.string());
  return read_all(file, path, longest);
}

std::string read_secret(const std::filesystem::path& path, std::string_view option, std::size_t fewest) {
  constexpr std::int64_t kLongest = 4096;
  const Descriptor file = open_to_read(path);
  struct stat found {};
  if (::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode))
    fail(ErrorKind::data, "{} {}: is no regular file", option, path.string());
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    fail(ErrorKind::data, "{} {}: other users can read or write it, so it is no secret; chmod 600 {}", option,
         path.string(), path.string());
  auto text = read_all(file, path, kLongest);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() < fewest || text.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos)
    fail(ErrorKind::data, "{} {}: must hold one line of at least {} characters, but has {}", option,
         path.string(), fewest, text.size());
  return text;
}

}  // namespace paceline::base
