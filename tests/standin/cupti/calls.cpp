#include "calls.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace pipewright::standin {
namespace {

struct Entry {
  CallId id;
  const char* name;
};

constexpr CUpti_CallbackDomain RUNTIME = CUPTI_CB_DOMAIN_RUNTIME_API;
constexpr CUpti_CallbackDomain DRIVER = CUPTI_CB_DOMAIN_DRIVER_API;
constexpr Entry entries[] = {
#define NAME(domain, name, number) {{domain, number}, name},
#include "call_names.inc"
#undef NAME
};

/// Returns the name without the version at its end.
std::string plain(const std::string& name) {
  const auto at = name.rfind("_v");
  const bool is_versioned =
      at != std::string::npos && at + 2 < name.size() &&
      std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 2, name.end(),
                  [](unsigned char c) { return std::isdigit(c); });
  return is_versioned ? name.substr(0, at) : name;
}

}  // namespace

std::optional<CallId> id_of(const std::string& call) {
  static const std::map<std::string, CallId> ids = [] {
    std::map<std::string, CallId> all;
    for (const Entry& entry : entries)
      all[plain(entry.name)] = entry.id;  // newer versions have larger numbers
    return all;
  }();
  const auto found = ids.find(call);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

const char* name_of(const CallId& id) {
  for (const Entry& entry : entries)
    if (entry.id.domain == id.domain && entry.id.number == id.number)
      return entry.name;
  return nullptr;
}

}  // namespace pipewright::standin
