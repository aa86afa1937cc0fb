#include "engine/device_inputs.h"

#include "utils/error.h"

namespace minisgl {
namespace {

void copy_to(Kernels& kernels, const Tensor& memory, TensorView& view) {
  if (view.empty()) return;
  const TensorView part = memory.view().slice(0, view.dim(0));
  kernels.copy(part, view);
  view = part;
}

}  // namespace

DeviceInputs::DeviceInputs(Kernels& kernels, int64_t max_tokens) : kernels_(kernels) {
  if (kernels.device().is_cpu()) return;
  const int64_t shape[] = {max_tokens};
  for (Tensor* memory : {&input_ids_, &positions_, &out_loc_, &logit_rows_}) {
    *memory = kernels.allocate(DType::kInt32, shape);
  }
}

void DeviceInputs::upload(Step& step) {
  if (kernels_.device().is_cpu()) return;
  copy_to(kernels_, input_ids_, step.batch.input_ids);
  copy_to(kernels_, positions_, step.batch.positions);
  copy_to(kernels_, out_loc_, step.batch.out_loc);
  copy_to(kernels_, logit_rows_, step.batch.logit_rows);
}

TensorView DeviceOutputs::to_host(TensorView logits) {
  if (logits.device().is_cpu()) return logits;
  if (host_logits_.empty() || host_logits_.view().numel() < logits.numel()) {
    host_logits_ = Tensor::zeros(DType::kFloat32, {logits.numel()});
  }
  const TensorView host(host_logits_.view().raw(), DType::kFloat32, logits.shape());
  kernels_.copy(host, logits);
  kernels_.synchronize();
  return host;
}

std::span<const int32_t> DeviceOutputs::argmax(TensorView logits) {
  const int64_t n = logits.dim(0);
  if (device_ids_.empty() || device_ids_.view().dim(0) < n) {
    const int64_t shape[] = {2 * n};
    device_ids_ = kernels_.allocate(DType::kInt32, shape);
  }
  ids_.resize(static_cast<size_t>(n));
  const TensorView ids = device_ids_.view().slice(0, n);
  kernels_.argmax(ids, logits);
  kernels_.copy(TensorView::of(std::span(ids_)), ids);
  kernels_.synchronize();
  return ids_;
}

}  // namespace minisgl
