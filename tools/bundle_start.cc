/// bin/paceline of a bundle: starts the program by the loader and the libraries that lie beside it, wherever
/// the bundle was moved to. A bundle with tests has the same file under the name of each test program.
/// tools/bundle compiles it without any library, so that it needs nothing of the machine, not even a shell.

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

/// The file that was started, its links followed: as the kernel says, or, where there is no /proc, as typed.
std::string own_path(const char* typed) {
  char path[PATH_MAX] = "";
  const auto length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  if (length > 0) return {path, static_cast<std::size_t>(length)};
  char resolved[PATH_MAX] = "";
  return ::realpath(typed, resolved) != nullptr ? resolved : typed;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// The program that has the starter's own name; the main one where somebody renamed the starter.
std::string program_of(const std::string& root, const std::string& self) {
  const std::string own = root + "/libexec/" + self.substr(self.rfind('/') + 1);
  return ::access(own.c_str(), X_OK) == 0 ? own : root + "/libexec/paceline";
}

}  // namespace

int main(int count, char** words) {
  const std::string self = own_path(words[0]), root = folder_of(folder_of(self));
  const std::string loader = root + "/lib/ld-linux-x86-64.so.2", program = program_of(root, self);
  const char* const others = std::getenv("LD_LIBRARY_PATH");  // for the machine's own MPI or CUDA
  std::string libraries = root + "/lib";
  if (others != nullptr && *others != '\0') libraries += std::string(":") + others;
  ::setenv("PACELINE_PROGRAM", self.c_str(), 1);
  std::vector<char*> line;
  const char* const started = words[0];
  for (const char* word :
       {loader.c_str(), "--argv0", started, "--library-path", libraries.c_str(), program.c_str()})
    line.push_back(const_cast<char*>(word));  // execv's signature is older than const
  for (int i = 1; i < count; ++i) line.push_back(words[i]);
  line.push_back(nullptr);
  ::execv(loader.c_str(), line.data());
  std::fprintf(stderr, "paceline: %s cannot be started: %s; is the bundle whole? unpack it again\n",
               loader.c_str(), std::strerror(errno));
  return 127;
}
