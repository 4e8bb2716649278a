#pragma once

// A name's letters and digits alone, in lower case, because people write one name in many ways:
// "Llama3.1 70B" becomes "llama3170b"; "ZB-2p*" and "zb_2P" both become "zb2p".

#include <string>

namespace pipewright::plan {

std::string bare_name(const std::string& name);

}  // namespace pipewright::plan
