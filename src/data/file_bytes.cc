#include "data/file_bytes.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.h"

namespace paceline::data {
namespace {

using base::ErrorKind;

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
