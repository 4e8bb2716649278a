#pragma once

// What the ranges are called that trainers and torch give to NVTX.

#include <cstdint>
#include <optional>
#include <string_view>

#include "explain/event_gatherer.hpp"

namespace pipewright::trace {

/// "aten::addmm, seq = 12, op_id = 7", as torch's emit_nvtx writes it.
struct NvtxName {
  std::string_view bare;                   // "aten::addmm"
  std::optional<std::int64_t> sequence{};  // 12: of a forward operator and of its backward
};
NvtxName nvtx_name(std::string_view text);

struct NvtxMeaning {
  enum class Kind { Range, Operator, Transfer, Interleaving } kind = Kind::Range;
  NamedRange range{};                             // of a Range
  OperatorKind transfer = OperatorKind::Compute;  // of a Transfer
};
/// Nothing for a range that speaks neither of a pipeline nor of an operator. `bare` must live on.
std::optional<NvtxMeaning> nvtx_meaning(const NvtxName& name);

}  // namespace pipewright::trace
