#include "engine/engine.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "attention/registry.h"
#include "engine/logprobs.h"
#include "engine/step_outputs.h"
#include "loader/open.h"
#include "utils/env.h"
#include "utils/error.h"
#include "utils/math.h"
#include "utils/progress.h"
#include "utils/system.h"

namespace minisgl {
namespace {

// Rows of logits are long: a step that computes a prompt's log-probabilities takes fewer tokens.
constexpr int64_t kMaxScoredTokens = 512;

// A page-table row is cut into whole pages whatever the page size, and starts on a cache line.
int64_t table_width(int64_t max_seq_len, int64_t page_size) {
  return align_up(max_seq_len, std::lcm(int64_t{32}, page_size));
}

DType resolve_dtype(const std::string& name, DType checkpoint) {
  if (name == "auto") return checkpoint;
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype || !is_floating(*dtype)) {
    throw_error(ErrorKind::kInvalidArgument,
                "--dtype {}: expected auto, float32, bfloat16 or float16", name);
  }
  return *dtype;
}

}  // namespace

Engine::Engine(const EngineConfig& config, const LoadProgress& progress) : config_(config) {
  if (config_.threads <= 0) config_.threads = usable_cores();
  threads_ = std::make_unique<ThreadPool>(config_.threads);
  device_ = open_device(config_.device, *threads_, config_.isa);
  kernels_ = device_.kernels.get();
  config_.device = device_.name;
  if (config_.isa == "auto" && kernels_->device().is_cpu()) {
    config_.isa = env_string("MINISGL_ISA").value_or(available_isas().front());
  }
  validate_attention_backend(config_.attention_backend, device_.attention);
  load_model(progress);

  KVPoolConfig pool;
  pool.num_layers = model_config_.num_layers;
  pool.page_size = config_.page_size;
  pool.num_kv_heads = model_config_.num_kv_heads;
  pool.head_dim = model_config_.head_dim;
  pool.dtype = weight_dtype_;
  memory_plan_ = plan_memory(config_, pool, config_.max_seq_len, device_.usable_bytes,
                             used_bytes(device_, weight_bytes_), kernels_->device().is_cpu());
  config_.num_pages = pool.num_pages = memory_plan_.num_pages;
  config_.max_seq_len = std::min(config_.max_seq_len, pool.num_pages * pool.page_size);
  pool_ = std::make_unique<KVPool>(*kernels_, pool);
  attention_ =
      create_attention_backend(config_.attention_backend, device_.attention, *kernels_, *pool_);

  allocate_tables();
  make_dummy();
  graphs_ = std::make_unique<GraphRunner>(
      graph_batch_sizes(std::min(config_.graph_max_bs, config_.max_running_requests)), *kernels_,
      *inputs_, *attention_, dummy_, config_.max_seq_len, page_table_,
      [this](Batch& batch) { return run_model(batch); });
  sampler_ = Sampler(model_config_.vocab_size);
  compute_ = std::make_unique<ComputeThread>([this](Step& step) { forward(step); });
}

Engine::~Engine() = default;

StepRunner::Limits Engine::limits() const {
  return {.num_pages = config_.num_pages,
          .page_size = config_.page_size,
          .max_seq_len = config_.max_seq_len,
          .max_running_requests = config_.max_running_requests,
          .max_prefill_tokens = config_.max_prefill_tokens,
          .max_scored_tokens = std::min(config_.max_prefill_tokens, kMaxScoredTokens),
          .vocab_size = model_config_.vocab_size};
}

void Engine::load_model(const LoadProgress& progress) {
  OpenedModel opened = open_model(config_.model_path, {.dummy_weight = config_.dummy_weight});
  model_config_ = opened.config;
  generation_config_ = opened.generation;
  tokenizer_path_ = opened.tokenizer_path;
  weight_dtype_ = resolve_dtype(config_.dtype, model_config_.dtype);
  config_.dtype = dtype_name(weight_dtype_);
  resolve_limits();
  device_.attention.dtype = weight_dtype_;
  device_.attention.head_dim = model_config_.head_dim;
  config_.attention_backend =
      resolve_attention_backend(config_.attention_backend, device_.attention).name;

  const Weights root(*opened.checkpoint);
  model_ = make_model(model_config_, LayerInit(root, *kernels_, weight_dtype_), config_.max_seq_len,
                      progress);
  opened.checkpoint->check_all_used(ignored_weights(model_config_));
  weight_bytes_ = opened.checkpoint->total_bytes();
}

void Engine::resolve_limits() {
  // Tables are sized by these: bounded, so that no product of sizes leaves 64 bits.
  constexpr int64_t kMax = int64_t{1} << 20;
  const auto positive = [](const char* flag, int64_t value, int64_t max) {
    if (value < 1 || value > max) {
      throw_error(ErrorKind::kInvalidArgument, "{} is {}, expected 1 to {}", flag, value, max);
    }
  };
  positive("--max-running-requests", config_.max_running_requests, kMax);
  if (config_.max_prefill_tokens == 0) {
    config_.max_prefill_tokens = kernels_->device().is_cpu() ? 512 : 8192;
  }
  positive("--max-prefill-length", config_.max_prefill_tokens, kMax);
  positive("--page-size", config_.page_size, std::numeric_limits<int32_t>::max());
  if (config_.num_pages < 0 || config_.max_seq_len < 0 || config_.graph_max_bs < 0) {
    throw_error(ErrorKind::kInvalidArgument,
                "--num-pages, --max-seq-len and --cuda-graph-max-bs must not be negative");
  }
  if (!(config_.memory_ratio > 0.0 && config_.memory_ratio <= 1.0)) {
    throw_error(ErrorKind::kInvalidArgument, "--memory-ratio is {}, expected above 0 up to 1",
                config_.memory_ratio);
  }
  const int64_t context = model_config_.max_position_embeddings;
  if (config_.max_seq_len > context) {
    throw_error(ErrorKind::kInvalidArgument,
                "--max-seq-len is {}, the model's context is {} tokens; ask for less",
                config_.max_seq_len, context);
  }
  if (config_.max_seq_len == 0) config_.max_seq_len = context;
  // A checkpoint may claim any context; its rotary table must leave room for the rest.
  const int64_t row_bytes = 4 * model_config_.head_dim;
  const int64_t most = device_.usable_bytes / 2 / row_bytes;
  if (config_.max_seq_len > most) {
    throw_error(ErrorKind::kResource,
                "a context of {} tokens needs more than half of the {} usable for its positions "
                "alone; give --max-seq-len of {} or less",
                config_.max_seq_len, format_bytes(static_cast<uint64_t>(device_.usable_bytes)),
                most);
  }
}

void Engine::allocate_tables() {
  const int64_t rows = config_.max_running_requests + 1;
  const int64_t shape[] = {rows, table_width(config_.max_seq_len, config_.page_size)};
  page_table_ = Tensor::zeros(DType::kInt32, shape);
  token_pool_ = Tensor::zeros(DType::kInt32, shape);

  // The widest step: a full prefill beside every running request.
  const int64_t tokens = config_.max_prefill_tokens + config_.max_running_requests;
  max_logit_rows_ = config_.max_running_requests + limits().max_scored_tokens;
  const int64_t bytes = activation_bytes(model_config_, tokens, max_logit_rows_) +
                        4 * (2 * tokens + max_logit_rows_) * model_config_.hidden_size;
  const int64_t arena_shape[] = {bytes};
  arena_memory_ = kernels_->allocate(DType::kUInt8, arena_shape);
  arena_ = Arena(arena_memory_.view().raw(), bytes);
  inputs_ = std::make_unique<DeviceInputs>(*kernels_, tokens);
  outputs_ = std::make_unique<DeviceOutputs>(*kernels_);
}

void Engine::make_dummy() {
  dummy_.uid = -1;
  dummy_.input_ids = {0};
  dummy_.prompt_len = dummy_.prefill_len = 1;
  dummy_.table_idx = static_cast<int32_t>(config_.max_running_requests);
  dummy_.cached_len = 0;
  dummy_.device_len = 1;
  dummy_.max_device_len = 2;
  for (int32_t& location : page_table_.view().select(dummy_.table_idx).values<int32_t>()) {
    location = static_cast<int32_t>(pool_->dummy_location());
  }
}

void Engine::prepare(Step& step) {
  Batch& batch = step.batch;
  graphs_->pad(batch);
  step.token_rows.clear();
  step.positions.clear();
  step.out_loc.clear();
  for (const Req* req : batch.padded_reqs) {
    const int32_t* locations = page_table_.view().select(req->table_idx).data<int32_t>();
    for (int64_t position = req->cached_len; position < req->device_len; ++position) {
      step.token_rows.push_back(req->table_idx);
      step.positions.push_back(static_cast<int32_t>(position));
      step.out_loc.push_back(locations[position]);
    }
  }
  step.input_ids.resize(step.positions.size());
  batch.input_ids = TensorView::of<int32_t>(step.input_ids);
  batch.positions = TensorView::of<int32_t>(step.positions);
  batch.out_loc = TensorView::of<int32_t>(step.out_loc);
  batch.page_table = page_table_;
  attention_->prepare_metadata(batch);

  describe_outputs(step, batch.attn_metadata->cu_seqlens_q, config_.seed);
  MINISGL_CHECK(static_cast<int64_t>(step.logit_rows.size()) <= max_logit_rows_,
                "{} rows of logits in a step, there is room for {}", step.logit_rows.size(),
                max_logit_rows_);
  for (Req* req : batch.reqs) req->complete_one();
  // In a decode batch every row is a last row, in order.
  const bool every_row = step.logit_rows.size() == step.positions.size();
  batch.logit_rows = every_row ? TensorView() : TensorView::of<int32_t>(step.logit_rows);
}

TensorView Engine::run_model(Batch& batch) {
  arena_.release(0);
  Context ctx{.kernels = *kernels_, .attention = *attention_, .arena = arena_, .batch = batch};
  // A GPU computes in the weights' type, the CPU in float32.
  if (!kernels_->device().is_cpu()) ctx.activation_dtype = weight_dtype_;
  for (TensorView& output : ctx.block_outputs) {
    output = ctx.activation({batch.num_tokens(), model_config_.hidden_size});
  }
  return model_->forward(ctx);
}

void Engine::forward(Step& step) {
  Batch& batch = step.batch;
  const int64_t width = token_pool_.view().stride(0);
  const int32_t* tokens = token_pool_.view().data<int32_t>();
  for (size_t t = 0; t < step.input_ids.size(); ++t) {
    step.input_ids[t] = tokens[step.token_rows[t] * width + step.positions[t]];
  }
  inputs_->upload(step);
  const bool use_graph = graphs_->can_use(batch) && !step.all_logits;
  const TensorView logits = use_graph ? graphs_->replay(batch) : run_model(batch);
  const bool plain = std::ranges::all_of(step.samples, [](const SampleRow& row) {
    return row.params->is_greedy() && !row.params->changes_logits();
  });
  if (plain && step.logprob_rows.empty() && !step.all_logits && !logits.device().is_cpu()) {
    take_most_likely(step, logits);
  } else {
    step.logits = outputs_->to_host(logits);
    sample(step);
    score(step);
  }
}

// Only ids come back from the GPU.
void Engine::take_most_likely(Step& step, TensorView logits) {
  step.next_tokens.assign(step.batch.size(), -1);
  if (step.samples.empty()) return;
  const std::span<const int32_t> ids = outputs_->argmax(logits);
  for (const SampleRow& row : step.samples) put_token(step, row, ids[row.logit_row]);
}

void Engine::sample(Step& step) {
  step.next_tokens.assign(step.batch.size(), -1);
  for (const SampleRow& row : step.samples) {
    const std::span<const float> logits = step.logits.select(row.logit_row).values<float>();
    const TensorView pool_row = token_pool_.view().select(row.table_idx);
    const TokenHistory history = {
        .tokens = pool_row.values<int32_t>().first(static_cast<size_t>(row.position)),
        .prompt_len = row.prompt_len,
        .eos_token_ids = row.eos_token_ids};
    const int32_t token = sampler_.sample(logits, *row.params, row.seed, row.position, history);
    put_token(step, row, token);
  }
}

// A long prompt has many rows, and each is a pass over the vocabulary.
void Engine::score(Step& step) {
  if (step.logprob_rows.empty()) return;
  const auto score_row = [this, &step](int64_t i) {
    const LogprobRow& row = step.logprob_rows[static_cast<size_t>(i)];
    const int32_t token =
        row.of_prompt ? token_pool_.view().select(row.table_idx).data<int32_t>()[row.position]
                      : step.next_tokens[static_cast<size_t>(row.request)];
    report_logprobs(
        step.logits.select(row.logit_row).values<float>(), token,
        std::span(step.logprobs).subspan(row.first, static_cast<size_t>(1 + row.num_top)));
  };
  threads_->parallel_for(static_cast<int64_t>(step.logprob_rows.size()), score_row);
}

void Engine::put_token(Step& step, const SampleRow& row, int32_t token) {
  step.next_tokens[static_cast<size_t>(row.request)] = token;
  const TensorView pool_row = token_pool_.view().select(row.table_idx);
  if (row.position < pool_row.dim(0)) pool_row.data<int32_t>()[row.position] = token;
}

std::string Engine::description() const {
  return fmt::format("{} on {}, {}, attention {}", model_config_.architecture,
                     kernels_->description(), config_.dtype, config_.attention_backend);
}

}  // namespace minisgl
