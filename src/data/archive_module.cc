// The module paceline_archive.so: all that calls libarchive.

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

#include <algorithm>
#include <new>
#include <system_error>

#include "data/archive.h"

namespace paceline::data {
namespace {

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

std::string reason_of(archive* handle) {
  const char* const said = archive_error_string(handle);
  return said == nullptr ? "no reason given" : said;
}

/// Letters of any alphabet in names while it lives: of a zip libarchive gives none that the locale lacks.
class Utf8Names {
 public:
  explicit Utf8Names(locale_t utf8) : before_(utf8 == nullptr ? nullptr : ::uselocale(utf8)) {}
  ~Utf8Names() {
    if (before_ != nullptr) ::uselocale(before_);
  }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;

 private:
  const locale_t before_;
};

class Reader final : public ArchiveReader {
 public:
  Reader(ArchiveForm form, std::span<const std::uint8_t> bytes) {
    if (handle_ == nullptr) throw std::bad_alloc();
    if (form == ArchiveForm::tar_gzip || form == ArchiveForm::gzip)
      archive_read_support_filter_gzip(handle_.get());
    if (form == ArchiveForm::tar || form == ArchiveForm::tar_gzip)
      archive_read_support_format_tar(handle_.get());
    else if (form == ArchiveForm::gzip)
      archive_read_support_format_raw(handle_.get());
    else
      archive_read_support_format_zip_seekable(handle_.get());
    if (form == ArchiveForm::zip) utf8_ = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    is_open_ = archive_read_open_memory(handle_.get(), bytes.data(), bytes.size()) == ARCHIVE_OK;
  }
  ~Reader() override {
    if (utf8_ != nullptr) ::freelocale(utf8_);
  }

  Next next(ArchiveMember& member) override {
    if (!is_open_) return Next::failed;
    const Utf8Names names(utf8_);
    archive_entry* entry = nullptr;
    const int status = archive_read_next_header(handle_.get(), &entry);
    if (status == ARCHIVE_EOF) return Next::end;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return Next::failed;
    member = {.path = text_or_empty(archive_entry_pathname(entry)),
              .is_file = archive_entry_filetype(entry) == AE_IFREG,
              .bytes = archive_entry_size_is_set(entry) != 0 ? archive_entry_size(entry) : -1,
              .begin = static_cast<std::uint64_t>(archive_filter_bytes(handle_.get(), 0)),
              .hard_link = text_or_empty(archive_entry_hardlink(entry)),
              .symlink = text_or_empty(archive_entry_symlink(entry)),
              .is_doubtful = status == ARCHIVE_WARN,
              .is_sparse = archive_entry_sparse_count(entry) > 0};
    return Next::member;
  }

  std::int64_t read(std::span<std::uint8_t> bytes) override {
    return std::max<std::int64_t>(archive_read_data(handle_.get(), bytes.data(), bytes.size()), -1);
  }

  [[nodiscard]] std::string reason() const override { return reason_of(handle_.get()); }

 private:
  const std::unique_ptr<archive, int (*)(archive*)> handle_{archive_read_new(), archive_read_free};
  locale_t utf8_ = nullptr;  // for names in a zip
  bool is_open_ = false;
};

class Writer final : public ArchiveWriter {
 public:
  explicit Writer(int descriptor) {
    if (handle_ == nullptr) throw std::bad_alloc();
    // Names are bytes here, as in a directory. The pax format states the character set of names beyond ASCII;
    // without a locale libarchive states "binary", and GNU tar then warns for every file.
    archive_write_set_format_gnutar(handle_.get());
    is_open_ = is_good(archive_write_open_fd(handle_.get(), descriptor));
  }

  bool add(const std::string& path, std::span<const std::uint8_t> bytes) override {
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                         archive_entry_free);
    archive_entry_set_pathname(entry.get(), path.c_str());
    archive_entry_set_size(entry.get(), static_cast<std::int64_t>(bytes.size()));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    return is_open_ && is_good(archive_write_header(handle_.get(), entry.get())) &&
           archive_write_data(handle_.get(), bytes.data(), bytes.size()) ==
               static_cast<la_ssize_t>(bytes.size());
  }

  bool finish() override { return is_open_ && is_good(archive_write_close(handle_.get())); }

  [[nodiscard]] std::string reason() const override {
    const int number = archive_errno(handle_.get());
    return reason_of(handle_.get()) + (number > 0 ? ": " + std::generic_category().message(number) : "");
  }

 private:
  static bool is_good(int status) { return status == ARCHIVE_OK || status == ARCHIVE_WARN; }

  const std::unique_ptr<archive, int (*)(archive*)> handle_{archive_write_new(), archive_write_free};
  bool is_open_ = false;
};

}  // namespace
}  // namespace paceline::data

PacelineArchives paceline_archives() {
  using namespace paceline::data;
  return {.read = [](ArchiveForm form, std::span<const std::uint8_t> bytes) -> ArchiveReader* {
            return new Reader(form, bytes);
          },
          .write_tar = [](int descriptor) -> ArchiveWriter* { return new Writer(descriptor); }};
}
