#pragma once

/// Cuts and changes the bytes of a file, to see that a reader reads or refuses it, and does nothing else.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "data/files.h"

namespace paceline::data {

/// Calls `read` with every length of `whole` at its beginning and end (all of them with PACELINE_LONG), and
/// with `whole` after one to four changes of bytes: 300 times, with PACELINE_LONG 10,000. It may throw
/// base::Error.
inline void read_mutations(const Bytes& whole, const std::function<void(const Bytes&)>& read) {
  const bool is_long = std::getenv("PACELINE_LONG") != nullptr;
  const auto attempt = [&](const Bytes& bytes) {
    try {
      read(bytes);
    } catch (const base::Error& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
    }
  };
  for (std::size_t length = 0; length < whole.size(); ++length)
    if (is_long || length < 150 || length + 150 > whole.size() || length % 61 == 0)
      attempt(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
  std::mt19937 random(7);
  for (int turn = 0; turn < (is_long ? 10'000 : 300); ++turn) {
    Bytes bytes = whole;
    for (auto changes = 1 + random() % 4; changes > 0; --changes) {
      const auto at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<std::uint8_t>(random());
          break;
        case 1:
          bytes[at] ^= static_cast<std::uint8_t>(1u << random() % 8);
          break;
        default:
          bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::uint8_t>(random()));
      }
    }
    attempt(bytes);
  }
}

}  // namespace paceline::data
