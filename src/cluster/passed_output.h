#pragma once

/// Passes on what a launcher prints. mpirun ends its run when the reader of its output is gone, and waits for
/// one that pauses; behind this it always has a reader, and launch drops what nobody reads in time.

#include <array>
#include <memory>
#include <thread>

#include "base/descriptor.h"
#include "base/line_output.h"

namespace paceline::cluster {

/// Whether two descriptors are open on one file, pipe or terminal.
[[nodiscard]] bool go_to_one_place(int one, int other);

/// Threads  made and destroyed by one thread; it has one of its own for each output
class PassedOutput {
 public:
  /// For standard output and standard error of this process, if they have a reader (base/line_output.h).
  /// Files are not passed on: a launcher writes them itself. Both are one output if they go to one place.
  PassedOutput();
  /// Passes on what has come. The launcher has ended; whoever still has the pipe is not waited for.
  ~PassedOutput();
  PassedOutput(const PassedOutput&) = delete;
  PassedOutput& operator=(const PassedOutput&) = delete;

  /// In a child, between fork() and exec(): makes the pipes its standard output and standard error.
  void take_in_child() const;

 private:
  struct Stream {
    std::unique_ptr<base::LineOutput> output;
    base::Descriptor from_launcher, to_output;  ///< the ends of the pipe
    std::jthread thread;                        ///< last: it uses the above
  };
  void open(std::size_t stream, int descriptor);
  static void pass(Stream& stream, const std::stop_token& stop);

  std::array<Stream, 2> streams_;  ///< by descriptor: [0] of standard output
  std::array<int, 2> stream_of_{-1,
                                -1};  ///< the stream of each descriptor; -1: written by the launcher itself
};

}  // namespace paceline::cluster
