// Loads the stand-in for CUPTI in addition to the real library.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "cupti/cupti_library.hpp"
#include "cupti/cupti_standin.hpp"

namespace pipewright::test {

class CuptiStandin {
 public:
  /// Sets the stand-in's behavior while it lives (tests/standin/cupti/cupti_standin.hpp).
  explicit CuptiStandin(const std::string& words = "") { behave(words); }
  ~CuptiStandin() { behave(""); }
  CuptiStandin(const CuptiStandin&) = delete;
  CuptiStandin& operator=(const CuptiStandin&) = delete;

  profiler::CuptiLibrary library = profiler::CuptiLibrary::load(PIPEWRIGHT_STANDIN_CUPTI_FILE);

  void behave(const std::string& words) const {
    function<decltype(&pipewright_standin_cupti)>("pipewright_standin_cupti")(words.c_str());
  }
  void hear(const PipewrightStandinWork& work) const {
    function<decltype(&pipewright_standin_cupti_hear)>("pipewright_standin_cupti_hear")(&work);
  }

 private:
  template <class Function>
  static Function function(const char* name) {
    void* const library = dlopen(PIPEWRIGHT_STANDIN_CUPTI_FILE, RTLD_LAZY);
    void* const address = library == nullptr ? nullptr : dlsym(library, name);
    if (address == nullptr)
      throw std::runtime_error(dlerror());
    return reinterpret_cast<Function>(address);
  }
};

/// Makes a piece of work as the stand-in for CUDA's runtime reports it; times are in microseconds.
inline PipewrightStandinWork work_by(const char* call, const char* name, double asked, double start,
                                     double end) {
  const auto ns = [](double us) { return static_cast<std::uint64_t>(us * 1000); };
  PipewrightStandinWork work{};
  const std::string text = call;
  work.kind = text.find("emcpy") != std::string::npos   ? PipewrightStandinWork::Copy
              : text.find("emset") != std::string::npos ? PipewrightStandinWork::Set
                                                        : PipewrightStandinWork::Kernel;
  work.call = call;
  work.name = name;
  work.bytes = 4096;
  work.copy_kind = 1;
  work.called_ns = ns(asked) - 500;
  work.returned_ns = ns(asked);
  work.start_ns = ns(start);
  work.end_ns = ns(end);
  work.thread = 7;
  return work;
}

}  // namespace pipewright::test
