// Sums of squares that do not depend on how numbers are partitioned.
#include "pipewright/exec/stage/square_sum.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.hpp"

namespace square_sum_test {

using namespace pipewright::exec;

SquareSum sum_of(const Tensors& values) {
  SquareSum sum;
  sum.add(values);
  return sum;
}

double total_of(const Tensors& values) { return sum_of(values).total().item<double>(); }

/// Returns the bins that count. They include what a total rounds away.
std::vector<double> highest_bins(const SquareSum& sum) {
  const at::Tensor& bins = sum.bins();
  std::int64_t highest = bins.numel() - 1;
  while (highest > 3 && bins[highest].item<double>() == 0)
    --highest;
  std::vector<double> found;
  for (std::int64_t bin = highest; bin > highest - 4; --bin)
    found.push_back(bins[bin].item<double>());
  return found;
}

/// Returns numbers of many magnitudes, some of them large.
at::Tensor numbers(std::int64_t count, double spread) {
  at::manual_seed(static_cast<std::uint64_t>(count));
  return at::randn({count}) * at::exp2(at::randn({count}) * spread);
}

TEST_CASE("A sum of squares is the exact sum, rounded once", "[exec]") {
  CHECK(total_of({}) == 0);
  CHECK(total_of({at::zeros({3})}) == 0);
  CHECK(total_of({at::tensor({3.0F, -4.0F})}) == 25);
  // 1 + 2^-50 + 2^-52: a running sum loses neither, since numbers down to 2^-60 of the largest
  // count.
  const at::Tensor small = at::tensor({1.0F, 0x1p-25F, 0x1p-26F});
  CHECK(total_of({small}) == 1 + 0x1p-50 + 0x1p-52);
  CHECK(total_of({at::full({1 << 20}, 0.1F)}) == (1 << 20) * std::pow(double{0.1F}, 2));
  for (const double spread : {0.0, 4.0, 20.0}) {
    const at::Tensor values = numbers(100'003, spread);
    const double wanted = values.to(at::kDouble).square().sum().item<double>();
    CHECK(std::abs(total_of({values}) / wanted - 1) < 1e-13);
  }
  CHECK(total_of({at::tensor({0x1p-140F, 0x1p-141F})}) == 1.25 * 0x1p-280);
  CHECK(total_of({at::tensor({0x1p+126F})}) == 0x1p+252);
}

TEST_CASE("A sum of squares has the same bits in any order and parts", "[exec]") {
  for (const double spread : {0.0, 6.0, 30.0}) {
    const at::Tensor values = numbers(70'001, spread);
    const double whole = total_of({values});
    const std::vector<double> wanted = highest_bins(sum_of({values}));
    for (const at::Tensor& same :
         {values.flip(0), std::get<0>(values.sort()), values.to(at::kDouble)}) {
      CHECK(total_of({same}) == whole);
      CHECK(highest_bins(sum_of({same})) == wanted);
    }
    for (const int parts : {2, 3, 64, 700}) {
      SquareSum sum;
      Tensors of_one;
      for (const at::Tensor& part : values.tensor_split(parts)) {
        SquareSum own;  // as on another rank
        own.add({part});
        sum.add_bins(own.bins());
        of_one.push_back(part);
      }
      CAPTURE(spread, parts);
      CHECK(sum.total().item<double>() == whole);
      CHECK(highest_bins(sum) == wanted);
      CHECK(total_of(of_one) == whole);
    }
  }
}

TEST_CASE("16-bit numbers are summed as they are, and numbers that are not finite are detected",
          "[exec]") {
  const at::Tensor values = numbers(1000, 2);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf})
    CHECK(total_of({values.to(type)}) == total_of({values.to(type).to(at::kFloat)}));
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    at::Tensor with = values.clone();
    with[500] = bad;
    CHECK_FALSE(std::isfinite(total_of({with, values})));
    CHECK_FALSE(std::isfinite(total_of({values, with})));
  }
}

}  // namespace square_sum_test
