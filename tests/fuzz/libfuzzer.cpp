// Entry point of libFuzzer for the reader that the environment variable PIPEWRIGHT_FUZZ names.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto* const reader = [] {
    const char* const name = std::getenv("PIPEWRIGHT_FUZZ");
    const auto* const found = pipewright::fuzz::find_reader(name == nullptr ? "" : name);
    if (found == nullptr) {
      std::fprintf(stderr, "set PIPEWRIGHT_FUZZ to the name of a reader, such as schedule\n");
      std::exit(2);
    }
    return found;
  }();
  reader->try_text({reinterpret_cast<const char*>(data), size});
  return 0;
}
