#include "folder_weights.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::engine {
namespace {

bool is_type_of_weights(at::ScalarType type) {
  return type == at::kFloat || type == at::kBFloat16 || type == at::kHalf || type == at::kDouble;
}

/// Joins the first lines and states how many more there are.
std::string some_of(std::vector<std::string> lines, const char* what) {
  constexpr std::size_t shown = 6;
  const std::size_t more = lines.size() - std::min(shown, lines.size());
  lines.resize(lines.size() - more);
  std::string text = fmt::format("{}", fmt::join(lines, "\n"));
  return more == 0 ? text : text + fmt::format("\nand {} more {}", more, what);
}

/// Returns "wte.weight" for "transformer.wte.weight".
std::string without_first_word(const std::string& name) { return name.substr(name.find('.') + 1); }

}  // namespace

FolderWeights::FolderWeights(const plan::HuggingFaceShape& shape, exec::WeightFolder folder)
    : shape_(shape), folder_(std::move(folder)) {
  const std::string embedding = folder_links(shape_, 0).front().tensor;
  if (folder_.find(embedding) == nullptr && folder_.find(without_first_word(embedding)) != nullptr)
    left_out_ = embedding.substr(0, embedding.find('.') + 1);
  require_tensors();
  require_tied_head();
}

std::string FolderWeights::name_in_folder(const std::string& tensor) const {
  return !left_out_.empty() && tensor.starts_with(left_out_) ? tensor.substr(left_out_.size())
                                                             : tensor;
}

void FolderWeights::require_tensors() const {
  std::set<std::string> asked;
  std::vector<std::string> faults;
  for (int layer = 0; layer < layer_count(shape_); ++layer)
    for (const FolderLink& link : folder_links(shape_, layer)) {
      const std::string name = name_in_folder(link.tensor);
      if (!asked.insert(name).second)
        continue;
      const exec::TensorShape* const found = folder_.find(name);
      if (found == nullptr)
        faults.push_back(fmt::format("{}: tensor '{}' [{}] is missing", folder_.folder().string(),
                                     name, fmt::join(link.sizes, ", ")));
      else if (found->sizes != link.sizes)
        faults.push_back(fmt::format("{}: tensor '{}' is [{}], but config.json requires [{}]",
                                     folder_.file_of(name).string(), name,
                                     fmt::join(found->sizes, ", "), fmt::join(link.sizes, ", ")));
      else if (!is_type_of_weights(found->dtype))
        faults.push_back(fmt::format(
            "{}: tensor '{}' has type {}; float32, bfloat16, float16 and float64 are supported",
            folder_.file_of(name).string(), name, exec::word_of(found->dtype)));
    }
  if (!faults.empty())
    throw plan::InputError(some_of(std::move(faults), "such tensors"));
  for (const std::string& name : folder_.names())
    if (!asked.contains(name) && !is_left_over(shape_, name) &&
        !is_left_over(shape_, left_out_ + name))
      faults.push_back(fmt::format(
          "{}: tensor '{}' [{}] is not used by any of the {} layers of the {} that config.json "
          "describes",
          folder_.file_of(name).string(), name, fmt::join(folder_.find(name)->sizes, ", "),
          shape_.transformer.config.layers, shape_.type));
  if (!faults.empty())
    throw plan::InputError(some_of(std::move(faults), "such tensors"));
}

void FolderWeights::require_tied_head() const {
  const exec::TensorShape* const head = folder_.find(head_tensor);
  if (!shape_.transformer.config.tied || head == nullptr)
    return;
  const std::string embedding = name_in_folder(folder_links(shape_, 0).front().tensor);
  const exec::TensorShape& shape = *folder_.find(embedding);
  if (head->dtype == shape.dtype && head->sizes == shape.sizes &&
      at::equal(folder_.tensor(head_tensor), folder_.tensor(embedding)))
    return;
  throw plan::InputError(
      fmt::format("{}: tensor '{}' differs from '{}', to which config.json ties it. Set "
                  "\"tie_word_embeddings\" to false to train a separate head, or remove the tensor",
                  folder_.file_of(head_tensor).string(), head_tensor, embedding));
}

at::Tensor FolderWeights::part(const FolderLink& link) const {
  return link.part_in(folder_.tensor(name_in_folder(link.tensor)));
}

void FolderWeights::fill(int index, exec::Layer& layer,
                         const exec::TensorParallelPlace& place) const {
  const auto links = folder_links(shape_, index);
  for (const auto& named : layer.named_parameters()) {
    const auto link = std::find_if(links.begin(), links.end(), [&](const FolderLink& one) {
      return one.parameter == named.key();
    });
    if (link == links.end())
      throw plan::InputError(
          fmt::format("layer {}: no tensor is known for its parameter '{}'", index, named.key()));
    const auto cut = exec::find_cut(layer, named.key());
    if (link->expert < 0) {
      const at::Tensor whole = part(*link);
      named.value().copy_(cut ? exec::part_of(whole, *cut, exec::seat_of(*cut, place)) : whole);
      continue;
    }
    const exec::PartIndex seat = exec::seat_of(*cut, place);
    const int shards = seat.count / seat.experts;
    const std::int64_t first =
        exec::border_of_part(cut->experts, seat.index / shards, seat.experts);
    for (const FolderLink& one : links)
      if (one.parameter == named.key() && one.expert >= first &&
          one.expert < first + named.value().size(0))
        named.value()[one.expert - first].copy_(
            exec::part_of(part(one).unsqueeze(0), *cut, {seat.index % shards, shards}).squeeze(0));
  }
}

}  // namespace pipewright::engine
