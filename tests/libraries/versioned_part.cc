/// The part of versioned_shim.cc that knows the version.

#include <cstddef>

extern "C" std::size_t part_version() { return PACELINE_VERSION_OF_PART; }
