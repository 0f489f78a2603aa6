#pragma once

/// Failed writes: the reason in words, and an errno for callers that retry.

#include <string>

#include "base/error.h"

namespace paceline::base {

/// Why the system refused a write, in words for `error` (an errno). For the limit on file sizes (ulimit -f,
/// which ends a process that does not ignore SIGXFSZ) it names the limit too.
[[nodiscard]] std::string reason_of_write(int error);

/// An Error(data) about a file that could not be written.
class WriteError : public Error {
 public:
  WriteError(const std::string& text, int code) : Error(ErrorKind::data, text), code_(code) {}
  [[nodiscard]] int code() const { return code_; }  ///< an errno

 private:
  int code_;
};

/// Whether a write that failed with `code` (an errno) may succeed a moment later: yes for a disk error, a
/// full disk or quota, lack of memory, and a network file system that does not answer; no for a read-only
/// file system or a missing permission.
[[nodiscard]] bool may_pass(int code);

}  // namespace paceline::base
