#include "data/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace paceline::data {
namespace {

using base::ErrorKind;

constexpr std::size_t kMostMappings = 1024;  // further mappings are not guarded

/// A mapping as the signal handler sees it. begin is 0 if the entry is not in use.
struct Guarded {
  std::atomic<std::uintptr_t> begin = 0;
  std::atomic<std::size_t> bytes = 0;
  std::atomic<std::int64_t> failed_at = -1;  ///< offset of the first page that became zeros
};

std::array<Guarded, kMostMappings> guarded_mappings;
struct sigaction action_before;
std::size_t page_bytes = 4096;

extern "C" void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Guarded& one : guarded_mappings) {
    const std::uintptr_t begin = one.begin.load();
    if (begin == 0 || address < begin || address - begin >= one.bytes.load()) continue;
    const std::uintptr_t page = address / page_bytes * page_bytes;
    if (::mmap(reinterpret_cast<void*>(page), page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0) == MAP_FAILED)
      break;
    std::int64_t none = -1;
    one.failed_at.compare_exchange_strong(none, static_cast<std::int64_t>(page - begin));
    return;  // the instruction is repeated, and reads zeros
  }
  ::sigaction(signal, &action_before,
              nullptr);  // restores the previous handler; the signal is then raised again
}

void handle_bus_errors() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, &action_before);
  });
}

/// -1: none is free.
int guard(const void* begin, std::size_t bytes) {
  handle_bus_errors();
  for (std::size_t i = 0; i < kMostMappings; ++i) {
    Guarded& slot = guarded_mappings[i];
    std::size_t free = 0;  // a slot is claimed by setting its length
    if (!slot.bytes.compare_exchange_strong(free, bytes)) continue;
    slot.failed_at = -1;
    slot.begin = reinterpret_cast<std::uintptr_t>(begin);
    return static_cast<int>(i);
  }
  return -1;
}

void forget(int slot) {
  if (slot < 0) return;
  guarded_mappings[static_cast<std::size_t>(slot)].begin = 0;
  guarded_mappings[static_cast<std::size_t>(slot)].bytes = 0;
}

[[noreturn]] void fail_open(const std::filesystem::path& path, const char* reason) {
  base::fail(ErrorKind::data, "{}: cannot be read: {}; check the path and its permissions", path.string(),
             reason);
}

/// A zlib stream over gzip data in memory: gives the next unpacked bytes, one gzip member after the other.
class Gunzip {
 public:
  Gunzip(const std::filesystem::path& path, std::span<const std::uint8_t> packed)
      : path_(path), rest_(packed) {
    // 15: the largest window; 16: a gzip header and checksum are required.
    base::expects(inflateInit2(&stream_, 15 + 16) == Z_OK, "zlib has the memory for its window");
  }
  ~Gunzip() { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  /// Fills `dst` as far as the file reaches; returns the number of bytes written.
  std::size_t read(std::span<std::uint8_t> dst) {
    std::size_t filled = 0;
    while (filled < dst.size() && !finished_) {
      if (stream_.avail_in == 0) refill();
      const std::size_t room = std::min<std::size_t>(dst.size() - filled, std::numeric_limits<uInt>::max());
      stream_.next_out = dst.data() + filled;
      stream_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t produced = room - stream_.avail_out;
      filled += produced;
      total_ += produced;
      if (status == Z_STREAM_END) {
        next_member();
      } else if (status == Z_BUF_ERROR || (status == Z_OK && produced == 0 && at_end())) {
        if (at_end()) fail_early_end();
      } else if (status != Z_OK) {
        base::fail(ErrorKind::data,
                   "{}: the gzip data is damaged after {} unpacked bytes (zlib: {}); fetch the file again",
                   path_.string(), total_, stream_.msg ? stream_.msg : zError(status));
      }
    }
    return filled;
  }

 private:
  [[nodiscard]] bool at_end() const { return rest_.empty() && stream_.avail_in == 0; }

  void refill() {
    const std::size_t count = std::min<std::size_t>(rest_.size(), std::numeric_limits<uInt>::max());
    stream_.next_in = const_cast<Bytef*>(rest_.data());  // zlib only reads it
    stream_.avail_in = static_cast<uInt>(count);
    rest_ = rest_.subspan(count);
  }

  void next_member() {
    if (stream_.avail_in == 0) refill();
    finished_ = stream_.avail_in == 0;
    if (!finished_) inflateReset(&stream_);
  }

  [[noreturn]] void fail_early_end() const {
    base::fail(ErrorKind::data,
               "{}: the gzip data breaks off after {} unpacked bytes, before its end mark; the file is "
               "incomplete: fetch it again",
               path_.string(), total_);
  }

  const std::filesystem::path& path_;
  std::span<const std::uint8_t> rest_;
  z_stream stream_{};
  std::size_t total_ = 0;
  bool finished_ = false;
};

constexpr std::size_t kDeflateLimit = 1032;  // zlib.net, "Maximum Compression Factor"

}  // namespace

std::int64_t read_at(int descriptor, std::uint64_t offset, std::span<std::uint8_t> dst) {
  std::size_t got = 0;
  while (got < dst.size()) {
    const auto count =
        ::pread(descriptor, dst.data() + got, dst.size() - got, static_cast<off_t>(offset + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  return static_cast<std::int64_t>(got);
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a FIFO must not block.
  const base::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) fail_open(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail_open(path, std::strerror(EISDIR));
  if (!S_ISREG(status.st_mode)) fail_open(path, "it is a FIFO or a device, but must be a regular file");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes == 0) return;
  void* const mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapping == MAP_FAILED) fail_open(path, std::strerror(errno));
  bytes_ = {static_cast<const std::uint8_t*>(mapping), bytes};
  slot_ = guard(mapping, bytes);
}

MappedFile::~MappedFile() {
  forget(slot_);
  if (!bytes_.empty()) ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

void MappedFile::swap(MappedFile& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(slot_, other.slot_);
}

void MappedFile::look() const {
  const std::int64_t at = guarded_mappings[static_cast<std::size_t>(slot_)].failed_at;
  if (at < 0) return;
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0)
    base::fail(ErrorKind::data, "{}: cannot be read from byte {} on, and is no longer there: {}",
               path_.string(), at, std::strerror(errno));
  const auto now = static_cast<std::size_t>(status.st_size);
  if (now < bytes_.size())
    base::fail(
        ErrorKind::data,
        "{}: cannot be read from byte {} on: it had {} bytes when it was opened and has {} now; put the "
        "whole file back, and go on from the last checkpoint",
        path_.string(), at, bytes_.size(), now);
  base::fail(ErrorKind::data,
             "{}: cannot be read from byte {} on: its disk or its server reports an error; look at the "
             "system's log, and go on from the last checkpoint",
             path_.string(), at);
}

FileBytes FileBytes::map(const std::filesystem::path& path) {
  FileBytes result;
  result.mapped_ = MappedFile(path);
  result.bytes_ = result.mapped_.bytes();
  return result;
}

FileBytes FileBytes::unpack_gzip(
    const std::filesystem::path& path, std::size_t header_bytes,
    const std::function<std::size_t(std::span<const std::uint8_t>)>& needed_bytes) {
  const FileBytes packed = map(path);
  Gunzip gunzip(path, packed.bytes());
  std::vector<std::uint8_t> header(header_bytes);
  header.resize(gunzip.read(header));
  const std::size_t needed = needed_bytes(header);
  if (needed / kDeflateLimit > packed.bytes().size())
    base::fail(
        ErrorKind::data,
        "{}: its header asks for {} bytes, more than {} bytes of gzip data can hold; the header is damaged: "
        "fetch the file again",
        path.string(), needed, packed.bytes().size());
  base::expects(needed >= header.size(), "the whole is no shorter than its header");

  FileBytes result;
  result.unpacked_ = base::Buffer(needed);
  const auto dst = result.unpacked_.as<std::uint8_t>();
  std::copy(header.begin(), header.end(), dst.begin());
  const std::size_t got = header.size() + gunzip.read(dst.subspan(header.size()));
  std::uint8_t beyond = 0;  // one byte more: checks the end mark and the checksum, and finds excess data
  const bool excess = got == needed && gunzip.read({&beyond, 1}) == 1;
  packed.require_read();
  if (got != needed || excess)
    base::fail(
        ErrorKind::data,
        "{}: its header announces {} bytes, but it unpacks to {}; the file is not what its header says: "
        "fetch it again",
        path.string(), needed, excess ? "more" : std::to_string(got));
  result.bytes_ = dst;
  return result;
}

}  // namespace paceline::data
