#include "checkpoint/seal.hpp"

#include <fmt/format.h>

#include "pipewright/exec/checkpoint/crc32c.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

std::string seal_of(const std::string& body) {
  return fmt::format(",\n\"crc32c\":\"{:08x}\"}}\n", crc32c(body.data(), body.size()));
}

const std::size_t seal_size = seal_of("").size();

}  // namespace

std::string sealed(const std::string& json_object) {
  const std::string body = json_object.substr(0, json_object.rfind('}'));
  return body + seal_of(body);
}

void check_seal(const std::string& text, const std::filesystem::path& file) {
  const std::size_t body_size = text.size() < seal_size ? 0 : text.size() - seal_size;
  const std::string body = text.substr(0, body_size);
  if (body + seal_of(body) != text)
    throw plan::InputError(
        fmt::format("{}: damaged: it does not end with the checksum of its text", file.string()));
}

}  // namespace pipewright::exec
