#include "data/get/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "base/error.h"

namespace paceline::data {

std::string sha256_of(const std::filesystem::path& path) {
  struct Closer {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  const std::unique_ptr<EVP_MD_CTX, Closer> context(EVP_MD_CTX_new());
  base::expects(context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1,
                "libcrypto has SHA-256");
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(std::size_t{1} << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0)
    EVP_DigestUpdate(context.get(), piece.data(), static_cast<std::size_t>(file.gcount()));
  if (!file.eof())
    base::fail(base::ErrorKind::data, "{}: cannot be read: {}", path.string(), std::strerror(errno));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &bytes);
  std::string text;
  for (unsigned int i = 0; i < bytes; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace paceline::data
