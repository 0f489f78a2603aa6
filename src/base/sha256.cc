#include "base/sha256.h"

#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/error.h"

namespace paceline::base {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  expects(context_->evp != nullptr && EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1,
          "libcrypto has SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size());
}

std::string Sha256::digits() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  EVP_DigestFinal_ex(context_->evp, digest.data(), &bytes);
  return fmt::format("{:02x}", fmt::join(std::span(digest).first(bytes), ""));
}

std::string sha256_of_text(std::string_view text) {
  Sha256 sum;
  sum.update(std::as_bytes(std::span(text)));
  return sum.digits();
}

std::string sha256_of(const std::filesystem::path& path) {
  Sha256 sum;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(std::size_t{1} << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0)
    sum.update(std::as_bytes(std::span(piece).first(static_cast<std::size_t>(file.gcount()))));
  if (!file.eof()) fail(ErrorKind::data, "{}: cannot be read: {}", path.string(), std::strerror(errno));
  return sum.digits();
}

}  // namespace paceline::base
