#include "cupti/recorded_calls.hpp"

#include <algorithm>
#include <array>

namespace pipewright::profiler {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array prefixes{"__cuda"sv, "cuda"sv, "cu64"sv, "cu"sv};
constexpr std::array verbs{"Launch"sv, "GraphLaunch"sv, "Memcpy"sv, "Memset"sv};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Removes the last underscore and what follows it, if that is a version or the kind of stream that
/// null stands for.
std::string_view shorter(std::string_view call) {
  const auto at = call.rfind('_');
  if (at == std::string_view::npos)
    return call;
  const std::string_view end = call.substr(at + 1);
  const bool is_version = end.starts_with('v') && is_number(end.substr(1));
  return is_version || end == "ptsz" || end == "ptds" ? call.substr(0, at) : call;
}

}  // namespace

bool gives_work(std::string_view call) {
  const auto prefix = std::find_if(prefixes.begin(), prefixes.end(),
                                   [&](auto each) { return call.starts_with(each); });
  if (prefix == prefixes.end())
    return false;
  call.remove_prefix(prefix->size());
  if (call.starts_with("LaunchHostFunc"))
    return false;  // the host does that
  return std::any_of(verbs.begin(), verbs.end(), [&](auto verb) { return call.starts_with(verb); });
}

std::string without_version(std::string_view call) {
  while (shorter(call) != call)
    call = shorter(call);
  return std::string(call);
}

KnownCalls known_calls(const CuptiLibrary& cupti, CUpti_CallbackDomain domain) {
  // Names end where the library's calls end.
  constexpr CUpti_CallbackId first_that_cannot_be = 4096;
  constexpr int unknown_in_a_row = 64;
  KnownCalls calls;
  int unknown = 0;
  for (CUpti_CallbackId call = 1; call < first_that_cannot_be && unknown < unknown_in_a_row;
       ++call) {
    const char* name = nullptr;
    const bool is_known = cupti.call_name(domain, call, &name) == CUPTI_SUCCESS && name != nullptr;
    unknown = is_known ? 0 : unknown + 1;
    if (is_known)
      (gives_work(name) ? calls.giving_work : calls.others).push_back(call);
  }
  return calls;
}

}  // namespace pipewright::profiler
