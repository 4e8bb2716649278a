#include "pipewright/exec/training/cut_parameter.hpp"

#include <ATen/ATen.h>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace cut_parameter_test {

using namespace pipewright;
using namespace pipewright::exec;

at::Tensor counted(std::vector<std::int64_t> sizes) {
  return at::arange(at::empty(sizes).numel()).view(sizes);
}

TEST_CASE("A tensor-parallel rank's part of queries, keys and values has rows of each", "[exec]") {
  const CutParameter cut{.name = "qkv.weight", .dimension = 0, .blocks = 3, .whole = 12};
  const at::Tensor part = part_of(counted({12, 1}), cut, {.index = 1, .count = 2});
  CHECK(at::equal(part.flatten(), at::tensor({2, 3, 6, 7, 10, 11}, at::kLong)));
}

TEST_CASE("Parts make up the whole, in all dimensions, blocks and uneven sizes", "[exec]") {
  int tried = 0;
  for (const int dimension : {0, 1})
    for (const int blocks : {1, 3})
      for (const int length : {4, 5, 7, 253})
        for (int count = 1; count <= 4; ++count) {
          std::vector<std::int64_t> sizes{2, 2};
          sizes[static_cast<std::size_t>(dimension)] = blocks * length;
          const at::Tensor whole = counted(sizes);
          const CutParameter cut{"weight", dimension, blocks, blocks * length};
          Tensors parts;
          for (int index = 0; index < count; ++index)
            parts.push_back(part_of(whole, cut, {index, count}));
          INFO(dimension << ' ' << blocks << ' ' << length << ' ' << count);
          CHECK(at::equal(joined(parts, cut), whole));
          ++tried;
        }
  CHECK(tried == 64);
}

TEST_CASE("Matrices of experts are partitioned along both axes, and joined again", "[exec]") {
  const at::Tensor whole = counted({4, 5, 3});
  const CutParameter cut{.name = "up.weight", .dimension = 1, .whole = 5, .experts = 4};
  int tried = 0;
  for (const int experts : {1, 2, 4})
    for (const int shards : {1, 2, 3}) {
      Tensors parts;
      for (int expert = 0; expert < experts; ++expert)
        for (int shard = 0; shard < shards; ++shard) {
          const PartIndex seat = seat_of(
              cut,
              {.index = shard, .count = shards, .experts = {.index = expert, .count = experts}});
          CHECK(seat.count == experts * shards);
          parts.push_back(part_of(whole, cut, seat));
          CHECK(parts.back().size(0) == 4 / experts);
          ++tried;
        }
      CHECK(at::equal(joined(parts, cut, experts), whole));
    }
  CHECK(tried == 7 * 6);
  // The second tensor-parallel rank of the second of two expert-parallel ranks has the last columns
  // of the last two matrices.
  CHECK(at::equal(part_of(whole, cut, {.index = 3, .count = 4, .experts = 2}),
                  whole.narrow(0, 2, 2).narrow(1, 2, 3)));
  // A parameter that belongs to no expert is partitioned only by tensor parallelism.
  CHECK(seat_of({.name = "query", .whole = 6}, {.index = 1, .count = 2, .experts = {1, 2}}).count ==
        2);
}

TEST_CASE("The groups of a rank are the same parts of the whole on any rank", "[exec]") {
  constexpr int groups = 12;
  int tried = 0;
  for (const int dimension : {0, 1})
    for (const int count : {1, 2, 3, 4, 6, 12}) {
      std::vector<std::int64_t> sizes{5, 5};
      sizes[static_cast<std::size_t>(dimension)] = 2 * 29;
      const at::Tensor whole = counted(sizes).to(at::kFloat);
      const CutParameter cut{"weight", dimension, /*blocks=*/2, 2 * 29};
      for (int index = 0, group = 0; index < count; ++index)
        for (const at::Tensor& part : group_parts(part_of(whole, cut, {index, count}), cut,
                                                  {index, count, groups, nullptr})) {
          CHECK(at::equal(part, part_of(whole, cut, {group, groups})));
          if (count < groups) {
            CHECK(part.is_contiguous());
            CHECK(reinterpret_cast<std::uintptr_t>(part.const_data_ptr()) % 64 == 0);
          }
          ++group;
          ++tried;
        }
    }
  CHECK(tried == 2 * 6 * groups);
}

TEST_CASE("A tensor that is not a part is rejected by name", "[exec]") {
  const CutParameter cut{.name = "qkv.weight", .dimension = 0, .blocks = 3, .whole = 12};
  CHECK(test::error_of([&] {
          part_of(counted({10, 1}), cut, {0, 2});
        }) ==
        "parameter qkv.weight: dimension 0 of a tensor with 2 dimensions cannot be divided into 3 "
        "equal blocks");
  CHECK(test::error_of([&] {
          joined({counted({9, 1}), counted({3, 1})}, cut);
        }) ==
        "parameter qkv.weight: the sizes of 2 tensors along dimension 0 are not those of the parts "
        "of a block of 4 elements");
}

}  // namespace cut_parameter_test
