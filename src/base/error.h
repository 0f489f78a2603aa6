#pragma once

/// The two error families of Paceline.
///
/// A bug (a broken precondition) ends the process: `expects(...)`. A fault of the world (a file, user input,
/// a device, a peer) throws `Error`, whose text is one sentence with place, rule, actual value and next step.
/// Only cli/main.cc turns an Error into an exit code; libraries never exit.

#include <fmt/core.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace paceline::base {

/// What went wrong; the value is the exit code of the program.
enum class ErrorKind {
  usage = 2,   ///< the command line, a recipe, an impossible combination of options
  data = 3,    ///< a data set, a record or a checkpoint that cannot be read or written
  device = 4,  ///< memory or a device
  comm = 5,    ///< a peer is lost, a deadline passed
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

/// Throws Error(kind) with a fmt-formatted sentence.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

/// Aborts with file, line and `what` when a precondition does not hold. Active in every build.
void expects(bool condition, std::string_view what,
             std::source_location where = std::source_location::current());

/// An error that every rank of a run throws at the same step, because the ranks have agreed on it there: for
/// example, a loss that is not finite. No rank is left waiting for another, so the processes can go on to
/// their next work together.
class AgreedError : public Error {
 public:
  using Error::Error;
};

// Failed writes: the reason in words, and an errno for callers that retry.

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
