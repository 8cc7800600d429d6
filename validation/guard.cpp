// A GPU that does nothing, so that a CPU-only PyTorch runs fake 'cuda' tensors.
//
// It registers the three things PyTorch asks a GPU for when no kernel runs: a device guard
// (autograd and factory functions), CUDA hooks (which accelerator is there), and the choice of the
// attention kernel, so that scaled_dot_product_attention takes the same path as on a real GPU.
// Load it before `import torch`: PyTorch looks for its hooks once, while it is imported.

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

const c10::Device kGpu(c10::DeviceType::CUDA, 0);
const c10::Stream kStream(c10::Stream::DEFAULT, kGpu);

struct IdleGuard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  c10::Device exchangeDevice(c10::Device) const override { return kGpu; }
  c10::Device getDevice() const override { return kGpu; }
  c10::Stream getStream(c10::Device) const noexcept override { return kStream; }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return kStream; }
};

struct IdleHooks final : at::CUDAHooksInterface {
  explicit IdleHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex current_device() const override { return 0; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  int getNumGPUs() const override { return 1; }
};

// What PyTorch's CUDA build picks on an Ampere or newer GPU (aten/src/ATen/native/transformers/
// cuda/sdp_utils.cpp): flash for 16 bits without a mask, else memory-efficient, else math.
int64_t choose_attention(
    const at::Tensor& query,
    const at::Tensor& /*key*/,
    const at::Tensor& /*value*/,
    const std::optional<at::Tensor>& mask,
    double /*dropout*/,
    bool /*is_causal*/,
    std::optional<double> /*scale*/,
    bool /*enable_gqa*/) {
  const auto& context = at::globalContext();
  const auto type = query.scalar_type();
  const bool flash = (type == at::kHalf || type == at::kBFloat16) && !mask.has_value() &&
      query.sym_size(-1) <= 256;
  auto choice = sdp::SDPBackend::math;
  if (flash && context.userEnabledFlashSDP()) {
    choice = sdp::SDPBackend::flash_attention;
  } else if (context.userEnabledMemEfficientSDP()) {
    choice = sdp::SDPBackend::efficient_attention;
  }
  return static_cast<int64_t>(choice);
}

struct ChoiceRegistrar {
  ChoiceRegistrar() {
    at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&choose_attention);
  }
} choice_registrar;

} // namespace

C10_REGISTER_GUARD_IMPL(CUDA, IdleGuard)

namespace at {
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", IdleHooks)
} // namespace at
