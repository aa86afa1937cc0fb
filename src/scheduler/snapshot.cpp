#include "scheduler/snapshot.h"

namespace minisgl {
namespace {

Json to_json(const RequestSnapshot& request) {
  Json json = {{"uid", request.uid},
               {"state", request.state},
               {"priority", request.priority},
               {"prompt_tokens", request.prompt_tokens},
               {"cached_tokens", request.cached_tokens},
               {"computed_tokens", request.computed_tokens},
               {"generated_tokens", request.generated_tokens},
               {"max_tokens", request.max_tokens},
               {"own_pages", request.own_pages},
               {"shared_pages", request.shared_pages}};
  if (request.waited_steps > 0) json["waited_steps"] = request.waited_steps;
  if (request.waits_for != WaitReason::kNone) {
    json["waits_for"] = wait_reason_name(request.waits_for);
  }
  if (request.behind >= 0) json["behind"] = request.behind;
  return json;
}

Json to_json(const StepSnapshot& step) {
  return {{"number", step.number},
          {"requests", step.requests},
          {"prefill_tokens", step.prefill_tokens},
          {"decode_tokens", step.decode_tokens},
          {"schedule_us", step.schedule_us},
          {"compute_us", step.compute_us}};
}

Json to_json(const PrefixNodeInfo& node) {
  return {{"id", node.id},
          {"parent", node.parent},
          {"num_tokens", node.num_tokens},
          {"ref_count", node.ref_count},
          {"last_used", node.last_used}};
}

Json to_json(const PageRun& run) {
  Json json = {{"first_page", run.first_page}, {"num_pages", run.num_pages}};
  if (run.owner == PageRun::kFree) {
    json["owner"] = "free";
  } else if (run.owner == PageRun::kCached) {
    json["owner"] = "cached";
  } else {
    json["owner"] = run.owner;
  }
  return json;
}

Json to_json(const SchedulerCounters& counters) {
  Json finished = Json::object();
  for (size_t i = 1; i < counters.finished.size(); ++i) {
    finished[std::string(finish_reason_name(static_cast<FinishReason>(i)))] = counters.finished[i];
  }
  return {{"submitted", counters.submitted},
          {"finished", finished},
          {"retracted", counters.retracted},
          {"steps", counters.steps},
          {"prompt_tokens_computed", counters.prompt_tokens_computed},
          {"prompt_tokens_cached", counters.prompt_tokens_cached},
          {"tokens_generated", counters.tokens_generated}};
}

template <class T>
Json list_of(const std::vector<T>& values) {
  Json json = Json::array();
  for (const T& value : values) json.push_back(to_json(value));
  return json;
}

}  // namespace

Json to_json(const SchedulerSnapshot& snapshot) {
  const PageCounts& pages = snapshot.pages;
  return {{"running", list_of(snapshot.running)},
          {"waiting", list_of(snapshot.waiting)},
          {"pages",
           {{"page_size", pages.page_size},
            {"total", pages.total},
            {"free", pages.free},
            {"cached", pages.cached},
            {"locked", pages.locked},
            {"owned", pages.owned}}},
          {"rows", {{"total", snapshot.rows_total}, {"free", snapshot.rows_free}}},
          {"last_steps", list_of(snapshot.last_steps)},
          {"counters", to_json(snapshot.counters)},
          {"page_owners", list_of(snapshot.page_owners)},
          {"prefix_tree", list_of(snapshot.prefix_tree)}};
}

}  // namespace minisgl
