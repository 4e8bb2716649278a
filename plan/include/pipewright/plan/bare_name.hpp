#pragma once

// A name as people write it in many ways, by its letters and digits alone, small: "Llama3.1 70B" is
// "llama3170b", "ZB-2p*" and "zb_2P" are "zb2p".

#include <string>

namespace pipewright::plan {

std::string bare_name(const std::string& name);

}  // namespace pipewright::plan
