#pragma once

/// A libarchive reader that is freed with its owner.

#include <archive.h>

#include <memory>

namespace paceline::data {

struct CloseArchiveReader {
  void operator()(archive* handle) const { archive_read_free(handle); }
};
using ArchiveReader = std::unique_ptr<archive, CloseArchiveReader>;

}  // namespace paceline::data
