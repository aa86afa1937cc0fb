// include/minisgl/c.h over the C++ API: no exception crosses the border.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "llm/json_api.h"
#include "minisgl/c.h"
#include "minisgl/llm.h"
#include "minisgl/version.h"
#include "utils/error.h"

struct minisgl_llm {
  minisgl::LLM llm;
};

struct minisgl_error {
  int code;
  std::string message;
};

namespace minisgl {
namespace {

void set_error(minisgl_error** out, ErrorKind kind, const char* message) {
  if (out != nullptr) *out = new (std::nothrow) minisgl_error{exit_code(kind), message};
}

// Runs `work`; what it throws becomes an error and a null result.
template <class Work>
auto guarded(minisgl_error** error, Work work) -> decltype(work()) {
  if (error != nullptr) *error = nullptr;
  try {
    return work();
  } catch (const Error& caught) {
    set_error(error, caught.kind(), caught.what());
  } catch (const std::bad_alloc&) {
    set_error(error, ErrorKind::kResource, "out of memory");
  } catch (const std::exception& caught) {
    set_error(error, ErrorKind::kInternal, caught.what());
  }
  return nullptr;
}

char* copied(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

const char* required(const char* text, const char* what) {
  if (text == nullptr) throw_error(ErrorKind::kInvalidArgument, "{} is NULL", what);
  return text;
}

minisgl_llm& required(minisgl_llm* llm) {
  if (llm == nullptr) throw_error(ErrorKind::kInvalidArgument, "the model is NULL");
  return *llm;
}

Json parsed(const char* text, const char* what) {
  return parse_json(required(text, what), what, ErrorKind::kInvalidArgument);
}

std::string generate(LLM& llm, const Json& requests, const PieceCallback& on_piece) {
  std::vector<Prompt> prompts;
  std::vector<SamplingParams> params;
  for (const Json& object : requests) {
    JsonRequest request = request_from_json(object, {});
    prompts.push_back(request.prompt ? std::move(*request.prompt)
                                     : Prompt(llm.encode_chat(request.messages)));
    params.push_back(std::move(request.sampling));
  }
  Json answers = Json::array();
  for (const Output& output : llm.generate(prompts, params, on_piece)) {
    answers.push_back(output_to_json(output));
  }
  // Token ids may decode to anything; what is not UTF-8 must not break the document.
  return answers.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace
}  // namespace minisgl

using minisgl::guarded;

extern "C" {

const char* minisgl_version(void) { return minisgl::kVersion; }

int minisgl_error_code(const minisgl_error* error) { return error == nullptr ? 0 : error->code; }
const char* minisgl_error_message(const minisgl_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}
void minisgl_free_error(minisgl_error* error) { delete error; }
void minisgl_free_string(char* text) { std::free(text); }

minisgl_llm* minisgl_open(const char* options_json, minisgl_error** error) {
  return guarded(error, [&]() -> minisgl_llm* {
    return new minisgl_llm{
        minisgl::LLM(minisgl::options_from_json(minisgl::parsed(options_json, "options")))};
  });
}

void minisgl_close(minisgl_llm* llm) { delete llm; }

char* minisgl_description(minisgl_llm* llm, minisgl_error** error) {
  return guarded(error, [&] { return minisgl::copied(minisgl::required(llm).llm.description()); });
}

char* minisgl_generate(minisgl_llm* llm, const char* request_json, minisgl_piece_callback on_piece,
                       void* user, minisgl_error** error) {
  return guarded(error, [&] {
    minisgl::Json requests = minisgl::parsed(request_json, "request");
    if (!requests.is_array()) requests = minisgl::Json::array({std::move(requests)});
    minisgl::PieceCallback callback;
    if (on_piece != nullptr) {
      callback = [on_piece, user](const minisgl::Piece& piece) {
        return on_piece(user, piece.index, piece.text.data(), piece.text.size(), piece.token) != 0;
      };
    }
    return minisgl::copied(minisgl::generate(minisgl::required(llm).llm, requests, callback));
  });
}

char* minisgl_encode(minisgl_llm* llm, const char* text, minisgl_error** error) {
  return guarded(error, [&] {
    const auto ids = minisgl::required(llm).llm.encode(minisgl::required(text, "text"));
    return minisgl::copied(minisgl::Json(ids).dump());
  });
}

char* minisgl_decode(minisgl_llm* llm, const char* ids_json, minisgl_error** error) {
  return guarded(error, [&] {
    const minisgl::Json ids = minisgl::parsed(ids_json, "ids");
    const bool ok = ids.is_array() && std::all_of(ids.begin(), ids.end(), [](const auto& id) {
                      return id.is_number_integer();
                    });
    if (!ok) {
      minisgl::throw_error(minisgl::ErrorKind::kInvalidArgument,
                           "ids: expected a list of token ids");
    }
    return minisgl::copied(minisgl::required(llm).llm.decode(ids.get<std::vector<int32_t>>()));
  });
}

}  // extern "C"
