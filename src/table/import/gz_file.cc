#include "table/import/gz_file.h"

#include <zlib.h>

#include "base/error.h"

namespace paceline::table {

void GzFile::Close::operator()(void* file) const { gzclose(static_cast<gzFile>(file)); }

GzFile::GzFile(const std::filesystem::path& path) {
  // A folder can be opened, but reads as an empty file.
  if (std::error_code none; !std::filesystem::is_directory(path, none))
    file_.reset(gzopen(path.c_str(), "rb"));
  if (!file_)
    base::fail(base::ErrorKind::data, "{}: cannot be read; is it there, and yours to read?", path.string());
  gzbuffer(static_cast<gzFile>(file_.get()), static_cast<unsigned>(buffer_.size()));
}

GzFile::int_type GzFile::underflow() {
  auto* const file = static_cast<gzFile>(file_.get());
  const int read = is_damaged_ ? 0 : gzread(file, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int error = Z_OK;
  gzerror(file, &error);
  if (read < 0 || (error != Z_OK && error != Z_STREAM_END)) is_damaged_ = true;
  if (read <= 0) return traits_type::eof();
  taken_ += static_cast<std::size_t>(read);
  setg(buffer_.data(), buffer_.data(), buffer_.data() + read);
  return traits_type::to_int_type(buffer_[0]);
}

std::string content_of(const std::filesystem::path& path, std::size_t most_bytes) {
  GzFile file(path);
  std::string content;
  std::array<char, 64 << 10> part;
  for (std::streamsize got = 0; (got = file.sgetn(part.data(), part.size())) > 0;) {
    content.append(part.data(), static_cast<std::size_t>(got));
    if (content.size() > most_bytes)
      base::fail(base::ErrorKind::data,
                 "{}: its content is larger than {} MiB, more than such a file ever has; was it written by "
                 "another program?",
                 path.string(), most_bytes >> 20);
  }
  if (file.is_damaged())
    base::fail(base::ErrorKind::data, "{}: the gzip data is damaged or cut; fetch it again", path.string());
  return content;
}

}  // namespace paceline::table
