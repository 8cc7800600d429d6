// A GPU that computes nothing and counts every byte, for a CPU-only PyTorch.
//
// Ordinary tensors on a `cuda` device: autograd, autocast, the optimizers and the front end of
// scaled_dot_product_attention are PyTorch's own, and no dispatch mode stands between them. Each
// operation for which PyTorch has a CUDA kernel is answered by `kernel` below: it asks the kernel
// of the meta device for shapes and allocates the outputs; every other operation decomposes as it
// does on a card. The allocator hands out addresses that nobody reads, and writes a log. What real
// kernels allocate beside their outputs is in `scratch.h`.
//
// PyTorch's CPU allocator is wrapped to write the same log, so that real memory can be compared.
//
// Load it before `import torch`: PyTorch looks for its hooks once, while it is imported.

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>
#include <ATen/SequenceNumber.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/GroupedMMUtils.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/record_function.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

const c10::Device kGpu(c10::DeviceType::CUDA, 0);

// ---- the log -----------------------------------------------------------------------------------

// Where bytes are: on the GPU, in the RAM beside it (a second counting device), or in real memory.
enum Place : int32_t { GPU = 0, RAM = 1, CPU = 2 };

// One birth (bytes > 0), death (bytes < 0) or cast (bytes == 0: `block` is the copy of `other`).
struct Entry {
  int64_t block;
  int64_t bytes;
  int64_t other;
  int64_t sequence;  // of the autograd node that is running, or -1
  int32_t place;
  int32_t operation;
  int32_t node;
  int32_t module;
  int32_t shape;
};

std::mutex mutex;  // CPU kernels may allocate on several threads
std::vector<Entry> entries;
bool logging = false;
int64_t blocks = 0;

struct Block {
  int64_t number;
  int64_t bytes;
  Place place;
};
std::unordered_map<const void*, Block> alive;  // by address

std::deque<std::string> texts{""};
std::unordered_map<std::string, int32_t> text_ids{{"", 0}};

int32_t text_id(const std::string& text) {
  const auto found = text_ids.find(text);
  if (found != text_ids.end()) {
    return found->second;
  }
  texts.push_back(text);
  const auto id = static_cast<int32_t>(texts.size() - 1);
  text_ids.emplace(text, id);
  return id;
}

int32_t module_now = 0;
int32_t shape_now = 0;

struct Running {
  int32_t name;
  int64_t sequence;
  bool is_node;
};
thread_local std::vector<Running> running;

void log_entry(int64_t block, int64_t bytes, int64_t other, Place place) {
  if (!logging) {
    return;
  }
  Entry entry{block, bytes, other, -1, place, 0, 0, module_now, shape_now};
  for (auto item = running.rbegin(); item != running.rend(); ++item) {
    if (item->is_node) {
      entry.node = item->name;
      entry.sequence = item->sequence;
      break;
    }
    if (!entry.operation || texts[entry.operation].rfind("aten::empty", 0) == 0) {
      entry.operation = item->name;
    }
  }
  entries.push_back(entry);
}

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
  const bool is_node = function.scope() == at::RecordScope::BACKWARD_FUNCTION;
  running.push_back({text_id(function.name()), function.seqNr(), is_node});
  return nullptr;
}

void leave(const at::RecordFunction&, at::ObserverContext*) {
  running.pop_back();
}

// ---- allocators --------------------------------------------------------------------------------

thread_local Place place_now = GPU;

struct Counting final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const auto index = static_cast<c10::DeviceIndex>(place_now);
    const c10::Device device(c10::DeviceType::CUDA, index);
    if (bytes == 0) {
      return {nullptr, nullptr, &free, device};
    }
    const std::lock_guard<std::mutex> lock(mutex);
    auto* address = reinterpret_cast<void*>(next_);
    next_ += (bytes + 511) / 512 * 512;
    alive[address] = {++blocks, static_cast<int64_t>(bytes), place_now};
    log_entry(blocks, static_cast<int64_t>(bytes), 0, place_now);
    return {address, address, &free, device};
  }

  static void free(void* address) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = alive.find(address);
    if (found == alive.end()) {
      return;
    }
    const auto block = found->second;
    alive.erase(found);
    log_entry(block.number, -block.bytes, 0, block.place);
  }

  void copy_data(void*, const void*, size_t) const override {}

 private:
  uint64_t next_ = 1ULL << 48;
};

struct CountingCpu final : c10::Allocator {
  explicit CountingCpu(c10::Allocator* base) : base_(base) {
    base_free = base->raw_deleter();
  }

  c10::DataPtr allocate(size_t bytes) override {
    auto inner = base_->allocate(bytes);
    auto* address = inner.release_context();
    if (bytes) {
      const std::lock_guard<std::mutex> lock(mutex);
      alive[address] = {++blocks, static_cast<int64_t>(bytes), CPU};
      log_entry(blocks, static_cast<int64_t>(bytes), 0, CPU);
    }
    return {address, address, &free, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &free;
  }

  static void free(void* address) {
    Counting::free(address);
    base_free(address);
  }

  void copy_data(void* to, const void* from, size_t count) const override {
    default_copy_data(to, from, count);
  }

  static inline c10::DeleterFnPtr base_free = nullptr;

 private:
  c10::Allocator* base_;
};

Counting counting;

// ---- tensors -----------------------------------------------------------------------------------

std::string describe(at::IntArrayRef sizes, at::ScalarType type) {
  std::string text = c10::toString(type);
  text += ' ';
  for (size_t at = 0; at < sizes.size(); ++at) {
    text += (at ? "x" : "") + std::to_string(sizes[at]);
  }
  return text;
}

Place place_of(c10::Device device) {
  return device.index() == 1 ? RAM : GPU;
}

struct Allocating {
  Allocating(Place place, at::IntArrayRef sizes, at::ScalarType type) {
    place_now = place;
    if (logging) {
      shape_now = text_id(describe(sizes, type));
    }
  }
  ~Allocating() {
    place_now = GPU;
    shape_now = 0;
  }
};

Tensor make(Place place, at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  const Allocating scope(place, sizes, type);
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::CUDA);
  return at::detail::empty_strided_generic(sizes, strides, &counting, keys, type);
}

Tensor make(Place place, at::IntArrayRef sizes, at::ScalarType type) {
  const Allocating scope(place, sizes, type);
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::CUDA);
  return at::detail::empty_generic(sizes, &counting, keys, type, std::nullopt);
}

void resize(const Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides) {
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(sizes, strides);
  const auto needed = at::detail::computeStorageNbytes(
      sizes, strides, tensor.dtype().itemsize(), tensor.storage_offset());
  auto* storage = tensor.storage().unsafeGetStorageImpl();
  if (needed > storage->nbytes()) {
    const Allocating scope(place_of(tensor.device()), sizes, tensor.scalar_type());
    storage->set_data_ptr_noswap(counting.allocate(needed));
    storage->set_nbytes(needed);
  }
}

} // namespace

#include "scratch.h"

namespace {

// ---- the kernel of every operation -------------------------------------------------------------

// What an operation's schema says of its results.
struct Shape {
  std::vector<int> same_as;  // the argument that a result is, or -1
  std::vector<int> view_of;  // the argument that a result is a view of, or -1
  std::vector<int> outs;     // arguments that the caller made for the results
  bool only_writes = true;
};

const Shape& shape_of(const c10::OperatorHandle& op) {
  static std::unordered_map<std::string, Shape> known;
  const auto& schema = op.schema();
  const auto key = schema.name() + "." + schema.overload_name();
  const auto found = known.find(key);
  if (found != known.end()) {
    return found->second;
  }
  Shape shape;
  const auto& arguments = schema.arguments();
  for (const auto& result : schema.returns()) {
    int same = -1;
    int view = -1;
    if (const auto* alias = result.alias_info()) {
      for (size_t at = 0; at < arguments.size(); ++at) {
        const auto* other = arguments[at].alias_info();
        if (other && other->beforeSets() == alias->beforeSets()) {
          (alias->isWrite() ? same : view) = static_cast<int>(at);
        }
      }
    }
    shape.same_as.push_back(same);
    shape.view_of.push_back(view);
    shape.only_writes = shape.only_writes && same >= 0;
  }
  for (size_t at = 0; at < arguments.size(); ++at) {
    if (arguments[at].is_out()) {
      shape.outs.push_back(static_cast<int>(at));
    }
  }
  return known.emplace(key, shape).first->second;
}

struct Metas {
  c10::Device device{c10::DeviceType::CPU};

  Tensor convert(const Tensor& tensor) {
    const bool number = tensor.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number();
    if (!tensor.defined() || tensor.is_meta() || (number && tensor.is_cpu())) {
      return tensor;
    }
    if (tensor.is_cuda() && !device.is_cuda()) {
      device = tensor.device();
    }
    auto meta = at::detail::empty_strided_meta(
        tensor.sizes(), tensor.strides(), tensor.scalar_type());
    Tensor result(meta);
    if (tensor.is_conj()) {
      result._set_conj(true);
    }
    if (tensor.is_neg()) {
      result._set_neg(true);
    }
    return result;
  }

  IValue convert(const IValue& value) {
    if (value.isTensor()) {
      return convert(value.toTensor());
    }
    if (value.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& tensor : value.toTensorVector()) {
        list.push_back(convert(tensor));
      }
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> list;
      for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector()) {
        list.push_back(tensor ? std::optional<Tensor>(convert(*tensor)) : std::nullopt);
      }
      return list;
    }
    if (value.isDevice() && value.toDevice().is_cuda()) {
      device = value.toDevice();
      return c10::Device(c10::DeviceType::Meta);
    }
    return value;
  }
};

Tensor born(const Tensor& meta, Place place) {
  if (!meta.defined()) {
    return meta;
  }
  auto made = make(place, meta.sizes(), meta.strides(), meta.scalar_type());
  if (meta.is_conj()) {
    made._set_conj(true);
  }
  if (meta.is_neg()) {
    made._set_neg(true);
  }
  return made;
}

IValue born(const IValue& value, Place place) {
  if (value.isTensor()) {
    return born(value.toTensor(), place);
  }
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorVector()) {
      list.push_back(born(tensor, place));
    }
    return list;
  }
  return value;
}

Tensor view(const Tensor& whole, const Tensor& meta) {
  c10::Storage storage = whole.storage();
  auto result = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, std::move(storage), whole.key_set(), meta.dtype());
  auto* impl = result.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(meta.sizes(), meta.strides());
  impl->set_storage_offset(whole.storage_offset() + meta.storage_offset());
  result._set_conj(meta.is_conj());
  result._set_neg(meta.is_neg());
  return result;
}

void kernel(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const auto& shape = shape_of(op);
  const auto& name = op.schema().name();
  const auto count = op.schema().arguments().size();
  std::vector<IValue> arguments(stack->end() - static_cast<int64_t>(count), stack->end());
  const at::AutoDispatchBelowADInplaceOrView guard;

  if (shape.only_writes && shape.outs.empty()) {  // in place: no result is allocated
    if (arguments[0].isTensor()) {
      make_scratch(name, place_of(arguments[0].toTensor().device()), arguments, {});
    }
    torch::jit::drop(*stack, count);
    for (const int same : shape.same_as) {
      stack->push_back(arguments[same]);
    }
    return;
  }

  Metas metas;
  for (size_t at = 0; at < count; ++at) {
    (*stack)[stack->size() - count + at] = metas.convert(arguments[at]);
  }
  std::vector<IValue> given(stack->end() - static_cast<int64_t>(count), stack->end());
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);

  const auto results = torch::jit::pop(*stack, shape.same_as.size());
  const auto place = place_of(metas.device);
  for (const int out : shape.outs) {
    if (arguments[out].isTensor() && given[out].isTensor()) {
      const auto& wanted = given[out].toTensor();
      if (arguments[out].toTensor().sizes() != wanted.sizes()) {
        resize(arguments[out].toTensor(), wanted.sizes(), wanted.strides());
      }
    }
  }
  std::vector<IValue> made;
  for (size_t at = 0; at < results.size(); ++at) {
    if (shape.same_as[at] >= 0) {
      made.push_back(arguments[shape.same_as[at]]);
    } else if (shape.view_of[at] >= 0) {
      made.emplace_back(
          view(arguments[shape.view_of[at]].toTensor(), results[at].toTensor()));
    } else if (on_host(name, at)) {
      made.emplace_back(at::empty(results[at].toTensor().sizes(), results[at].toTensor().dtype()));
    } else {
      made.push_back(born(results[at], place));
    }
  }
  make_scratch(name, place, arguments, made);
  for (auto& value : made) {
    stack->push_back(std::move(value));
  }
}

void backend_fallback(
    const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  kernel(op, keys, stack);
}

// ---- operations with a kernel of their own -----------------------------------------------------

Tensor empty(
    at::IntArrayRef sizes,
    std::optional<at::ScalarType> type,
    std::optional<at::Layout>,
    std::optional<at::Device> device,
    std::optional<bool>,
    std::optional<at::MemoryFormat> format) {
  const auto dtype = type.value_or(at::typeMetaToScalarType(at::get_default_dtype()));
  const Allocating scope(place_of(device.value_or(kGpu)), sizes, dtype);
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::CUDA);
  return at::detail::empty_generic(sizes, &counting, keys, dtype, format);
}

Tensor empty_strided(
    at::IntArrayRef sizes,
    at::IntArrayRef strides,
    std::optional<at::ScalarType> type,
    std::optional<at::Layout>,
    std::optional<at::Device> device,
    std::optional<bool>) {
  const auto dtype = type.value_or(at::typeMetaToScalarType(at::get_default_dtype()));
  return make(place_of(device.value_or(kGpu)), sizes, strides, dtype);
}

const Tensor& resize_(
    const Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  if (self.sizes() != sizes) {
    const auto meta = at::detail::empty_meta(sizes, self.scalar_type(), std::nullopt,
                                             std::nullopt, std::nullopt, format);
    resize(self, sizes, meta.strides());
  }
  return self;
}

int64_t block_of(const Tensor& tensor) {
  const auto found = alive.find(tensor.storage().data());
  return found == alive.end() ? 0 : found->second.number;
}

// A copy between the GPU and the CPU goes through temporaries where types or layouts differ
// (aten/src/ATen/native/cuda/Copy.cu).
Tensor& copy_(Tensor& to, const Tensor& from, bool) {
  if (to.is_cuda() && from.is_cuda() && to.scalar_type() != from.scalar_type()) {
    log_entry(block_of(to), 0, block_of(from), place_of(to.device()));
  }
  return to;
}

at::Scalar one(const Tensor& tensor) {
  const auto type = tensor.scalar_type();
  if (type == at::kBool) {
    return true;
  }
  return at::isIntegralType(type, false) ? at::Scalar(1) : at::Scalar(1.0);
}

bool equal(const Tensor&, const Tensor&) {
  return true;
}

// The output of a convolution, to which its caller adds the bias in place; cuDNN's workspace is not
// counted (aten/src/ATen/native/cudnn/ConvShared.cpp).
Tensor cudnn_convolution(
    const Tensor& input,
    const Tensor& weight,
    at::IntArrayRef padding,
    at::IntArrayRef stride,
    at::IntArrayRef dilation,
    int64_t,
    bool,
    bool,
    bool) {
  const auto sizes =
      at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  return make(place_of(input.device()), sizes, input.scalar_type());
}

// A convolution of each channel for itself (aten/src/ATen/native/cuda/DepthwiseConv2d.cu).
Tensor depthwise_convolution(
    const Tensor& input,
    const Tensor& weight,
    at::IntArrayRef,
    const std::optional<Tensor>&,
    at::IntArrayRef stride,
    at::IntArrayRef padding,
    at::IntArrayRef dilation) {
  const auto sizes =
      at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  return make(place_of(input.device()), sizes, input.scalar_type());
}

// Triangular systems of equations, solved in the result, whose columns are contiguous. Matrices with
// gaps are copied; cuBLAS solves many or small ones together by lists of their addresses
// (aten/src/ATen/native/BatchLinearAlgebra.cpp, linalg_solve_triangular_out;
// native/cuda/linalg/BatchLinearAlgebra.cpp, triangular_solve_kernel).
Tensor solve_triangular(const Tensor& system, const Tensor& right, bool, bool, bool) {
  TORCH_CHECK(system.dim() == right.dim(), "systems are counted that need no broadcast");
  const auto place = place_of(right.device());
  auto turned = right.sizes().vec();
  std::swap(turned.end()[-1], turned.end()[-2]);
  const auto out = make(place, turned, right.scalar_type()).transpose_(-2, -1);
  const bool fits = system.is_contiguous() || system.mT().is_contiguous();
  const auto copied = fits ? Tensor() : make(place, system.sizes(), system.scalar_type());
  const auto size = system.size(-1);
  const auto systems = size == 0 ? 0 : system.numel() / (size * size);
  if (systems > 8 || size < 64) {
    const auto of_systems = make(place, {systems}, at::kLong);
    const auto of_results = make(place, {systems}, at::kLong);
  }
  return out;
}

// Products of experts with their tokens. The meta kernel takes bfloat16 alone; CUDA's takes fp32 and
// fp16 too, and wants rows of whole 16 bytes. On compute capability 8.0 it writes one group's product
// after the other into the output, so nothing depends on how tokens are routed
// (aten/src/ATen/native/cuda/GroupedBlas.cpp, _grouped_mm_cuda; native/GroupedMMUtils.h).
Tensor grouped_mm(
    const Tensor& one,
    const Tensor& other,
    const std::optional<Tensor>& ends,
    const std::optional<Tensor>& bias,
    std::optional<at::ScalarType> type) {
  at::native::_grouped_mm_validate_inputs(one, other, ends, bias, type);
  const auto made = at::native::_resolve_grouped_mm_out_dtype(one, other, type);
  return at::native::create_grouped_gemm_output_tensor(one, other, ends, made);
}

// A product in a wider format than its factors, into a tensor that exists; the meta device has no
// kernel for it (aten/src/ATen/native/cuda/Blas.cpp, _mm_dtype_out_cuda).
Tensor& wide_product(const Tensor& one, const Tensor& other, at::ScalarType, Tensor& out) {
  make_scratch("aten::mm", place_of(one.device()), {one, other}, {});
  return out;
}

// What PyTorch's CUDA build picks on a GPU of this compute capability
// (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
bool may_use_flash(const sdp::sdp_params& params) {
  const auto type = params.query.scalar_type();
  const auto width = params.query.size(-1);
  const bool half = type == at::kHalf || type == at::kBFloat16;
  const bool widths = params.key.size(-1) == width && params.value.size(-1) == width;
  const bool square = !params.is_causal || params.query.size(-2) == params.key.size(-2);
  const auto heads = params.query.size(1);
  const auto key_heads = params.key.size(1);
  const bool grouped = params.enable_gqa && params.value.size(1) == key_heads &&
      key_heads != 0 && heads % key_heads == 0;
  const bool heads_fit = (heads == key_heads && heads == params.value.size(1)) || grouped;
  return capability >= 80 && half && !params.attn_mask.has_value() && widths && width <= 256 &&
      square && heads_fit;
}

bool may_use_efficient(const sdp::sdp_params& params) {
  const auto type = params.query.scalar_type();
  const bool half = type == at::kHalf || (type == at::kBFloat16 && capability >= 80);
  const int64_t multiple = half ? 8 : (capability >= 80 ? 4 : 1);
  const auto aligned = [&](const Tensor& tensor) {
    return capability < 80 || tensor.storage_offset() % multiple == 0;
  };
  return (half || type == at::kFloat) && params.key.size(-1) == params.query.size(-1) &&
      params.query.size(-1) % multiple == 0 && params.value.size(-1) % multiple == 0 &&
      aligned(params.query) && aligned(params.key) && aligned(params.value) &&
      params.query.size(1) == params.key.size(1) && params.query.size(1) == params.value.size(1);
}

int64_t choose_attention(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const std::optional<Tensor>& mask,
    double dropout,
    bool is_causal,
    std::optional<double> /*scale*/,
    bool enable_gqa) {
  const auto& context = at::globalContext();
  const sdp::sdp_params params{query, key, value, mask, dropout, is_causal, enable_gqa};
  const bool dense = query.dim() == 4 && key.dim() == 4 && value.dim() == 4 &&
      query.stride(-1) == 1 && key.stride(-1) == 1 && value.stride(-1) == 1 &&
      query.size(0) == key.size(0) && query.size(0) == value.size(0) &&
      (!mask.has_value() || mask->stride(-1) == 1 || mask->size(-1) == 1);
  auto choice = context.userEnabledMathSDP() ? sdp::SDPBackend::math : sdp::SDPBackend::error;
  if (dense && context.userEnabledFlashSDP() && may_use_flash(params)) {
    choice = sdp::SDPBackend::flash_attention;
  } else if (dense && context.userEnabledMemEfficientSDP() && may_use_efficient(params)) {
    choice = sdp::SDPBackend::efficient_attention;
  }
  return static_cast<int64_t>(choice);
}

// ---- what PyTorch asks a GPU for ---------------------------------------------------------------

struct Guard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  c10::Device exchangeDevice(c10::Device) const override { return kGpu; }
  c10::Device getDevice() const override { return kGpu; }
  c10::DeviceIndex deviceCount() const noexcept override { return 2; }
  c10::Stream getStream(c10::Device device) const noexcept override { return stream(device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device); }
  c10::Stream exchangeStream(c10::Stream given) const noexcept override { return given; }
  static c10::Stream stream(c10::Device device) {
    const auto index = std::max<c10::DeviceIndex>(0, device.index());
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::DeviceType::CUDA, index));
  }
};

struct Hooks final : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool hasCuDNN() const override { return true; }
  bool compiledWithCuDNN() const override { return true; }
  bool supportsDilatedConvolutionWithCuDNN() const override { return true; }
  bool supportsDepthwiseConvolutionWithCuDNN() const override { return true; }
  bool supportsBFloat16ConvolutionWithCuDNNv8() const override { return true; }
  long versionCuDNN() const override { return 91900; }
  long versionRuntimeCuDNN() const override { return 91900; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 2; }
  c10::DeviceIndex current_device() const override { return 0; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  int getNumGPUs() const override { return 2; }
};

const char* const kKernels[] = {
#include "kernels.inc"
};

struct Registrar {
  Registrar() {
    c10::SetAllocator(c10::DeviceType::CUDA, &counting, 1);
    static CountingCpu cpu(c10::GetAllocator(c10::DeviceType::CPU));
    c10::SetAllocator(c10::DeviceType::CPU, &cpu, 1);
    at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&choose_attention);
    at::addGlobalCallback(at::RecordFunctionCallback(&enter, &leave)
                              .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  }
} registrar;

} // namespace

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

namespace at {
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", Hooks)
} // namespace at

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("resize_", TORCH_FN(resize_));
  library.impl("copy_", TORCH_FN(copy_));
  library.impl("_local_scalar_dense", TORCH_FN(one));
  library.impl("equal", TORCH_FN(equal));
  library.impl("cudnn_convolution", TORCH_FN(cudnn_convolution));
  library.impl("_conv_depthwise2d", TORCH_FN(depthwise_convolution));
  library.impl("linalg_solve_triangular", TORCH_FN(solve_triangular));
  library.impl("_grouped_mm", TORCH_FN(grouped_mm));
  library.impl("mm.dtype_out", TORCH_FN(wide_product));
  for (const char* name : kKernels) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&kernel>());
  }
}

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&backend_fallback>());
}

// ---- for Python --------------------------------------------------------------------------------

extern "C" {
void counting_start() {
  entries.clear();
  logging = true;
}
void counting_stop() { logging = false; }
int64_t counting_size() { return static_cast<int64_t>(entries.size()); }
const Entry* counting_entries() { return entries.data(); }
int64_t counting_entry_bytes() { return sizeof(Entry); }
// The block that lives at an address now, or 0.
int64_t counting_block(const void* address) {
  const auto found = alive.find(address);
  return found == alive.end() ? 0 : found->second.number;
}
int64_t counting_block_bytes(const void* address) {
  const auto found = alive.find(address);
  return found == alive.end() ? 0 : found->second.bytes;
}
int64_t counting_blocks() { return blocks; }
// Gives a storage of the GPU other bytes, as FSDP2 does when it frees and fills a weight.
void counting_resize(void* storage, int64_t bytes) {
  auto* impl = static_cast<c10::StorageImpl*>(storage);
  const Allocating scope(place_of(impl->device()), {bytes}, at::kByte);
  impl->set_data_ptr_noswap(counting.allocate(bytes));
  impl->set_nbytes(bytes);
}
// How many blocks live, and what they are where there is room to write.
int64_t counting_alive(Entry* room) {
  for (const auto& item : alive) {
    if (room != nullptr) {
      *room++ = {item.second.number, item.second.bytes, 0, -1, item.second.place, 0, 0, 0, 0};
    }
  }
  return static_cast<int64_t>(alive.size());
}
// The compute capability of the card whose choice of attention kernels is counted.
void counting_capability(int32_t ten_times) { capability = ten_times; }
int32_t counting_text_id(const char* text) { return text_id(text); }
const char* counting_text(int32_t id) { return texts[id].c_str(); }
void counting_module(int32_t id) { module_now = id; }
int64_t counting_sequence() { return static_cast<int64_t>(at::sequence_number::peek()); }
}
