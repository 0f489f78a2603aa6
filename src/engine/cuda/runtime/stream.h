#pragma once

/// Handles of a Runtime's streams, events and captured sections: small numbers, valid for the runtime that
/// made them.

namespace paceline::engine::cuda {

/// A queue of work that runs in order. Different streams run in any order that events allow.
struct Stream {
  int index = -1;
  bool operator==(const Stream&) const = default;
};

/// A mark in a stream, which another stream or the host can wait for.
struct Event {
  int index = -1;
  bool operator==(const Event&) const = default;
};

/// Work of one stream that was recorded once, to be started again by one call.
struct CapturedSection {
  int index = -1;
  bool operator==(const CapturedSection&) const = default;
};

}  // namespace paceline::engine::cuda
