#include "node_list.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {

// A host's name may have several brackets ("rack[1-2]n[01-04]"); its first host has the first
// number of each.
std::string first_host(const std::string& node_list) {
  std::string host;
  std::size_t place = 0;
  while (place < node_list.size() && node_list[place] != ',') {
    if (node_list[place] != '[') {
      host += node_list[place++];
      continue;
    }
    const auto close = node_list.find(']', place);
    const auto end = node_list.find_first_of("-,]", place);
    if (close == std::string::npos || end == place + 1)
      throw plan::InputError(fmt::format("\"{}\" is not a list of nodes", node_list));
    host += node_list.substr(place + 1, end - place - 1);
    place = close + 1;
  }
  if (host.empty())
    throw plan::InputError(fmt::format("\"{}\" is not a list of nodes", node_list));
  return host;
}

}  // namespace pipewright::exec
