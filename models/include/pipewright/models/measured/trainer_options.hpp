#pragma once

// The trainer options (Megatron-LM) in a row of a table, besides sizes and parallelism. The tensors
// that the trainer keeps and the work that it overlaps depend on them. An empty text or 0 means not
// given.

#include <string>
#include <vector>

namespace pipewright::models {

struct TrainerOptions {
  std::string family{};    // model family: gpt, moe, bert, t5, hybrid and others
  std::string date{};      // of the trainer's version: 2025-04-28
  std::string platform{};  // as its table names it
  std::string device{};    // the GPU, as its table names it
  int nodes = 0;
  int repeat = 0;  // number of the run within a test: the second resumes the first one's checkpoint
  std::string test_type{};  // the purpose of the test

  int padded_vocabulary = 0;  // 0: Megatron-LM's default padding
  std::string position{};     // learned_absolute, rope, none
  bool bias = false;
  double attention_dropout = 0;
  double hidden_dropout = 0;

  bool overlaps_gather_with_step = false;  // parameter all-gather overlaps the optimizer step
  bool late_embedding_gradient = false;    // the embedding's weight gradient runs after the last
                                           // backward

  std::string precision{};  // as in the table: bf16, fp16, fp8-hybrid+bf16, …
  std::string fp8_recipe{};
  bool fp8_parameters = false;
  std::string fp8_attention{};
  std::string gradient_dtype{};
  std::string optimizer{};

  std::string recompute_method{};  // uniform or block
  int recompute_layers = 0;
  std::vector<std::string> recompute_modules{};

  std::string attention_backend{};
  std::string implementation{};  // transformer_engine or local
  bool fused_gradient_accumulation = false;
  bool fp32_residual = false;
  std::string cross_entropy_fusion{};  // no, native, te

  bool grouped_products = false;  // grouped GEMM for a device's experts
  std::string dispatcher{};       // allgather, alltoall, flex
  std::string cuda_graph{};
  bool deterministic = false;
  std::string arguments{};    // further arguments: name=value; name
  std::string environment{};  // NAME=value NAME=value
  std::string memory_rank{};  // the rank whose memory was read: a number, or "last"
  friend bool operator==(const TrainerOptions&, const TrainerOptions&) = default;
};

}  // namespace pipewright::models
