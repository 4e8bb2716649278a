#include "pipewright/exec/device/loaded_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {

LoadedLibrary::LoadedLibrary(std::string name, const char* file)
    : name_(std::move(name)), library_(dlopen(file, RTLD_LAZY)) {
  if (library_ == nullptr)
    throw plan::InputError(fmt::format("{}: {}", name_, dlerror()));
}

void* LoadedLibrary::address_of(const char* symbol) const {
  void* const address = address_or_null(symbol);
  if (address == nullptr)
    throw plan::InputError(fmt::format("{}: {}", name_, dlerror()));
  return address;
}

void* LoadedLibrary::address_or_null(const char* symbol) const { return dlsym(library_, symbol); }

}  // namespace pipewright::exec
