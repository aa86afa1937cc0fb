// FlashInfer's templates behind plain functions: a plan on the host, then a launch per layer. One
// translation unit a kernel family, since their headers define the same names.
//
// plan() reads the *_host arrays, fills `plan` and uploads to the workspace on `stream`; run() must
// see the same sizes, window and workspace. Both return a CUDA error or throw std::exception.
#pragma once

#include "attention/cuda/paged_call.h"

namespace minisgl::cuda {

struct FlashInferPlan {
  int64_t values[16] = {};
  int count = 0;
};

// CUDA cores, one query a request. GQA groups 1 2 3 4 6 8 16, no sinks; head dims 64, 128.
bool fi_decode_supports(const PagedCall& call);
cudaError_t fi_decode_plan(FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                           bool graph, cudaStream_t stream);
cudaError_t fi_decode_run(const FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                          cudaStream_t stream);

// Tensor cores, any group, KV splits; prefill, extend and decode. Head dims 64, 128.
bool fi_prefill_supports(const PagedCall& call);
cudaError_t fi_prefill_plan(FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                            bool graph, cudaStream_t stream);
cudaError_t fi_prefill_run(const FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                           cudaStream_t stream);

// Hopper's wgmma; long queries, no KV splits, no softcap, no sinks. Head dims 64, 128.
bool fi_hopper_supports(const PagedCall& call);
cudaError_t fi_hopper_plan(FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                           cudaStream_t stream);
cudaError_t fi_hopper_run(const FlashInferPlan& plan, const Workspace& ws, const PagedCall& call,
                          cudaStream_t stream);

}  // namespace minisgl::cuda
