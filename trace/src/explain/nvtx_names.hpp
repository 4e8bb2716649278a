#pragma once

// Interprets the names of NVTX ranges of trainers and of torch.

#include <cstdint>
#include <optional>
#include <string_view>

#include "explain/event_gatherer.hpp"

namespace pipewright::trace {

/// A range name such as "aten::addmm, seq = 12, op_id = 7", as torch's emit_nvtx writes it.
struct NvtxName {
  std::string_view bare;                   // "aten::addmm"
  std::optional<std::int64_t> sequence{};  // 12: common to a forward operator and its backward
};
NvtxName nvtx_name(std::string_view text);

struct NvtxMeaning {
  enum class Kind { Range, Operator, Transfer, Interleaving } kind = Kind::Range;
  NamedRange range{};                             // for Kind::Range
  OperatorKind transfer = OperatorKind::Compute;  // for Kind::Transfer
};
/// Returns nothing for a range that belongs neither to a pipeline nor to an operator. `bare` must
/// outlive the result.
std::optional<NvtxMeaning> nvtx_meaning(const NvtxName& name);

}  // namespace pipewright::trace
