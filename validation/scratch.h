// What CUDA kernels allocate beside their outputs, from PyTorch's sources (release 2.13). Sizes
// follow the kernels' own arguments and the card's compute capability.
//
// `kernels.toml` lists operations, functions, sources and what they allocate; from it the build makes
// `scratch.inc`, which has the rule below for each operation.
//
// Not here, because it depends on the card or on a library: workspaces of cuBLAS, cuDNN and CUB,
// partial sums of reductions and of flash attention's split keys (small batches without dropout).
//
// The efficient kernel keeps its random state in the CPU's memory (attention.cu).

#include <ATen/core/dispatch/Dispatcher.h>

#include <numeric>

namespace {

constexpr int64_t kMultiprocessors = 108;  // an A100's

using Bytes = int64_t;
using Stages = std::vector<std::vector<Bytes>>;  // each stage is freed before the next one

int64_t ceil_to(int64_t size, int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

int64_t ceil_by(int64_t size, int64_t divisor) {
  return (size + divisor - 1) / divisor;
}

const Tensor& tensor_at(const std::vector<IValue>& arguments, size_t at) {
  return arguments[at].toTensor();
}

Bytes copy_if_gaps(const Tensor& tensor) {
  return tensor.is_contiguous() ? 0 : tensor.numel() * static_cast<int64_t>(tensor.itemsize());
}

// grad_out, query, key, value, out, ...: (batch, heads, length, width)
Stages flash_backward(const std::vector<IValue>& arguments, const std::vector<IValue>&) {
  const auto& query = tensor_at(arguments, 1);
  const auto& key = tensor_at(arguments, 2);
  const auto batch = query.size(0), heads = query.size(1), length = query.size(2);
  const auto width = query.size(3);
  const auto rows = ceil_to(length, 128);
  std::vector<Bytes> found{
      copy_if_gaps(tensor_at(arguments, 0).transpose(1, 2)),
      copy_if_gaps(tensor_at(arguments, 4).transpose(1, 2)),
      batch * heads * rows * 4,
      batch * rows * heads * ceil_to(width, width <= 128 ? 32 : 64) * 4};
  if (key.size(1) != heads) {
    const Bytes expanded = batch * key.size(2) * heads * width * 2;
    found.insert(found.end(), {expanded, expanded});
  }
  return {found};
}

// query, key, value, dropout_p, ...
Stages flash_forward(const std::vector<IValue>& arguments, const std::vector<IValue>&) {
  return arguments[3].toDouble() > 0 ? Stages{{2 * 8}} : Stages{};
}

// query, key, value, attn_bias, ...
Stages efficient_forward(const std::vector<IValue>& arguments, const std::vector<IValue>&) {
  const auto& query = tensor_at(arguments, 0);
  const auto width = tensor_at(arguments, 2).size(-1);
  if (query.itemsize() == 4 || std::max(width, query.size(-1)) <= 128) {
    return {};
  }
  return {{query.size(0) * query.size(1) * query.size(2) * width * 4}};
}

// Ten times the compute capability of the card.
int64_t capability = 80;

// The tile of the first kernel in mem_eff_attention/kernels/cutlassB.h that takes these heads and
// fits in shared memory (99 KiB on 8.6, 8.9 and 12.0, 64 on 7.5): rows of queries and keys, and
// whether the keys' and values' gradients are summed up in memory.
struct Tile {
  int64_t queries;
  int64_t keys;
  bool sums_keys;
};

Tile tile_of(int64_t width, bool half, bool dropped) {
  if (width <= 64 || (!half && capability < 80)) {
    return {64, 64, false};
  }
  if (width > 128) {
    return {128, 64, half};
  }
  if (!half || capability < 80) {
    return {128, 64, false};
  }
  if (capability == 80 || capability == 90 || capability / 10 == 10) {
    return {128, 128, false};
  }
  const bool narrow = width <= 96 && !dropped && (capability == 86 || capability == 89);
  return narrow ? Tile{128, 64, false} : Tile{64, 64, true};
}

// grad_out, query, key, value, attn_bias, out, ...
Stages efficient_backward(const std::vector<IValue>& arguments, const std::vector<IValue>&) {
  const auto& grad = tensor_at(arguments, 0);
  const auto& query = tensor_at(arguments, 1);
  const auto& key = tensor_at(arguments, 2);
  const auto& value = tensor_at(arguments, 3);
  const auto batch = query.size(0), heads = query.size(1), length = query.size(2);
  const auto width = query.size(3), value_width = value.size(3), keys = key.size(2);
  const bool half = query.itemsize() == 2;
  const auto copied = copy_if_gaps(grad.transpose(1, 2));
  const Bytes row_sums = batch * heads * length * 4;

  const auto tile = tile_of(std::max(width, value_width), half, arguments[9].toDouble() > 0);
  int64_t splits = ceil_by(keys, tile.keys);
  if (heads * batch >= 256 && keys <= 2 * tile.keys) {
    splits = 1;
  }
  if (tile.sums_keys) {
    splits = std::min(splits, 200 / (batch * heads));
  }
  splits = std::max<int64_t>(splits, 1);
  const auto summed = [&](int64_t size) {
    return tile.sums_keys ? splits * tile.keys * ceil_to(size, tile.queries) : 0;
  };
  const auto tiles = ceil_by(length, tile.queries) * ceil_by(width, tile.keys);
  const auto elements =
      ceil_to(summed(width) + summed(value_width) + tiles * (4 + tile.queries * tile.keys), 4);
  const Bytes workspace = batch * heads * elements * 4;
  if (half) {
    return {{copied, row_sums, workspace}};
  }
  const Bytes product = row_sums * value_width;
  return {{copied, product, row_sums, row_sums}, {copied, row_sums, workspace}};
}

// grad_output, indices, num_weights, padding_idx, scale_grad_by_freq
Stages embedding_backward(const std::vector<IValue>& arguments, const std::vector<IValue>&) {
  const auto& grad = tensor_at(arguments, 0);
  const auto& indices = tensor_at(arguments, 1);
  const auto copied = copy_if_gaps(grad);
  const auto count = indices.numel();
  if (count <= 3072) {
    return {{copied, copy_if_gaps(indices)}};
  }
  const auto item = static_cast<int64_t>(indices.itemsize());
  const auto rows = std::min(count, arguments[2].toInt());
  const auto sums = count / 10 + rows;
  const Bytes sum_item = std::max<int64_t>(4, static_cast<int64_t>(grad.itemsize()));
  const auto list = count * item, width = grad.size(-1);
  std::vector<Bytes> made{copied, list, list, 8, list, rows * item, rows * item, 8, sums * item};
  // few rows are added up in place, by atomic additions
  const auto threads = ceil_to(width, 32);
  const auto blocks = ceil_by(rows * threads, std::min<int64_t>(threads, 1024));
  if (blocks < 4 * kMultiprocessors && sums > 4 * blocks) {
    made.push_back(sums * item);
    made.push_back(grad.itemsize() < 4 ? arguments[2].toInt() * width * 4 : 0);
  } else {
    made.push_back(sums * width * sum_item);
  }
  return {{copied, list, list, list}, made};
}

// A matrix can be handed to cuBLAS where one of its last two strides is 1 and the other is no
// smaller than the row or column that it steps over.
Bytes copy_for_product(const Tensor& matrix) {
  const auto dimensions = matrix.dim();
  if (dimensions < 2 || matrix.is_non_overlapping_and_dense()) {
    return 0;
  }
  const auto fits = [&](int64_t one, int64_t other) {
    return matrix.stride(one) == 1 &&
        matrix.stride(other) >= std::max<int64_t>(1, matrix.size(one));
  };
  if (fits(-1, -2) || fits(-2, -1)) {
    return 0;
  }
  return matrix.numel() * static_cast<int64_t>(matrix.itemsize());
}

Stages product(const std::vector<IValue>& arguments, const std::vector<IValue>&) {
  std::vector<Bytes> found;
  for (const size_t at : {0, 1, 2}) {
    if (at < arguments.size() && arguments[at].isTensor() && arguments[at].toTensor().is_cuda()) {
      found.push_back(copy_for_product(arguments[at].toTensor()));
    }
  }
  return {found};
}

Stages bias_product(const std::vector<IValue>& arguments, const std::vector<IValue>&) {
  return {{copy_for_product(tensor_at(arguments, 1)), copy_for_product(tensor_at(arguments, 2))}};
}

// self, indices, values, accumulate, unsafe: adds rows at places that may be the same
Stages index_put(const std::vector<IValue>& arguments, const std::vector<IValue>&) {
  if (!arguments[3].toBool()) {
    return {};
  }
  int64_t places = 1;
  int64_t indexed = 0;
  for (const std::optional<Tensor>& index : arguments[1].toOptionalTensorVector()) {
    if (index.has_value() && index->defined()) {
      places = std::max(places, index->numel());
      ++indexed;
    }
  }
  if (indexed != 1) {
    return {};
  }
  const auto copied = copy_if_gaps(tensor_at(arguments, 2));
  const Bytes list = places * 8;
  return {{list, list}, {list, copied, list, list, list}};
}

// self, stable, dim, descending
Stages sort(const std::vector<IValue>& arguments, const std::vector<IValue>&) {
  const auto& values = tensor_at(arguments, 0);
  const bool one_row = values.dim() == 1 && values.numel() > 4096;
  return one_row ? Stages{{values.numel() * 8}} : Stages{};
}

// self, dim, dtype
Stages cumulative_sum(const std::vector<IValue>& arguments, const std::vector<IValue>& results) {
  const auto& result = results[0].toTensor();
  if (tensor_at(arguments, 0).scalar_type() == result.scalar_type()) {
    return {};
  }
  return {{result.numel() * static_cast<int64_t>(result.itemsize())}};
}

// grad_output, input, weight, ...
Stages convolution_backward(const std::vector<IValue>& arguments, const std::vector<IValue>&) {
  const bool line = tensor_at(arguments, 2).dim() == 3;
  const auto copied = line ? copy_if_gaps(tensor_at(arguments, 1)) : 0;
  return {{copy_if_gaps(tensor_at(arguments, 0)), copied}};
}

// grad_output, output, dim, input_dtype: the product, and its contiguous copy
Stages softmax_backward(const std::vector<IValue>& arguments, const std::vector<IValue>&) {
  const auto& grad = tensor_at(arguments, 0);
  const Bytes product = grad.numel() * static_cast<int64_t>(grad.itemsize());
  return {{product, grad.is_non_overlapping_and_dense() ? copy_if_gaps(grad) : 0}};
}

using Scratch = Stages (*)(const std::vector<IValue>&, const std::vector<IValue>&);

const std::unordered_map<std::string, Scratch> kScratch{
#include "scratch.inc"
};

// Allocate and free what the kernel of this operation does, once its outputs are there.
void make_scratch(
    const std::string& name,
    Place place,
    const std::vector<IValue>& arguments,
    const std::vector<IValue>& results) {
  const auto found = kScratch.find(name);
  if (found == kScratch.end()) {
    return;
  }
  for (const auto& stage : found->second(arguments, results)) {
    std::vector<Tensor> made;
    for (const Bytes size : stage) {
      if (size > 0) {
        made.push_back(make(place, {size}, at::kByte));
      }
    }
  }
}

// Whether the kernel makes this result in the CPU's memory.
bool on_host(const std::string& name, size_t result) {
  return name == "aten::_scaled_dot_product_efficient_attention" && result >= 2;
}

} // namespace
