#include "looks.hpp"

#include <algorithm>

namespace pipewright::draw {

std::size_t look_index(std::string_view kind) {
  const auto found = std::find_if(kind_looks.begin(), kind_looks.end() - 1,
                                  [&](const KindLook& look) { return look.kind == kind; });
  return static_cast<std::size_t>(found - kind_looks.begin());
}

}  // namespace pipewright::draw
