#pragma once

/// A write that the system refused: the reason in words, and as a number for those who try again.

#include <string>

#include "base/error.h"

namespace paceline::base {

/// Why the system refused a write, for a sentence: its reason for `error` (an errno), and where that is the
/// limit of a file's size (ulimit -f, which ends a process that does not ignore SIGXFSZ) the limit too.
[[nodiscard]] std::string reason_of_write(int error);

/// An Error(data) about a file that could not be written.
class WriteError : public Error {
 public:
  WriteError(const std::string& text, int code) : Error(ErrorKind::data, text), code_(code) {}
  [[nodiscard]] int code() const { return code_; }  ///< an errno

 private:
  int code_;
};

/// Whether a write that failed with `code` (an errno) may succeed a moment later: a disk error, a full disk
/// or quota, memory that the system did not have, a network file system that did not answer. A read-only file
/// system or a missing permission stays as it is.
[[nodiscard]] bool may_pass(int code);

}  // namespace paceline::base
