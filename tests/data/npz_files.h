#pragma once

/// Files as NumPy writes them.

#include <archive.h>
#include <archive_entry.h>

#include <string>
#include <utility>
#include <vector>

#include "data/files.h"

namespace paceline::data {

/// An array with the header of numpy.save(); `shape` as Python prints it, "(3, 4)".
inline Bytes npy(const std::string& type, const std::string& shape, const Bytes& values,
                 const std::string& order = "False") {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  Bytes bytes{0x93,
              'N',
              'U',
              'M',
              'P',
              'Y',
              1,
              0,
              static_cast<std::uint8_t>(header.size() & 0xff),
              static_cast<std::uint8_t>(header.size() >> 8)};
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

using Members = std::vector<std::pair<std::string, Bytes>>;

/// A zip archive of NAME.npy, stored as numpy.savez() does, or packed as savez_compressed().
inline Bytes npz(const Members& members, bool is_packed = false) {
  Bytes file(1 << 20);
  std::size_t used = 0;
  archive* zip = archive_write_new();
  EXPECT_EQ(archive_write_set_format_zip(zip), ARCHIVE_OK);
  if (!is_packed) {
    EXPECT_EQ(archive_write_zip_set_compression_store(zip), ARCHIVE_OK);
  }
  EXPECT_EQ(archive_write_set_bytes_per_block(zip, 0), ARCHIVE_OK);
  EXPECT_EQ(archive_write_open_memory(zip, file.data(), file.size(), &used), ARCHIVE_OK);
  for (const auto& [name, bytes] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, (name + ".npy").c_str());
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0600);
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    EXPECT_EQ(archive_write_header(zip, entry), ARCHIVE_OK);
    EXPECT_EQ(archive_write_data(zip, bytes.data(), bytes.size()), static_cast<la_ssize_t>(bytes.size()));
    archive_entry_free(entry);
  }
  EXPECT_EQ(archive_write_close(zip), ARCHIVE_OK);
  archive_write_free(zip);
  file.resize(used);
  return file;
}

}  // namespace paceline::data
