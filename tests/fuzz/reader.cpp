#include "reader.hpp"

namespace pipewright::fuzz {
namespace {

const Reader* first_reader = nullptr;

}  // namespace

Reader::Reader(const char* reader, TryText promise)
    : name(reader), try_text(promise), next(first_reader) {
  first_reader = this;
}

const Reader* find_reader(std::string_view name) {
  for (const Reader* reader = first_reader; reader != nullptr; reader = reader->next)
    if (name == reader->name)
      return reader;
  return nullptr;
}

}  // namespace pipewright::fuzz
