/* The C API, for other languages. Requests and answers are JSON in UTF-8.
 *
 *   minisgl_error* error = NULL;
 *   minisgl_llm* llm = minisgl_open("{\"model\": \"model.gguf\"}", &error);
 *   char* answer = minisgl_generate(llm, "{\"prompt\": \"Once\", \"max_tokens\": 8}", NULL, NULL,
 *                                   &error);
 *
 * What fails returns NULL and, unless `error` is NULL, sets *error, which the caller frees.
 * Returned strings are freed with minisgl_free_string(). Thread-safe: calls on one model take
 * turns.
 */
#ifndef MINISGL_C_H
#define MINISGL_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MINISGL_API __attribute__((visibility("default")))
#else
#define MINISGL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct minisgl_llm minisgl_llm;
typedef struct minisgl_error minisgl_error;

MINISGL_API const char* minisgl_version(void);

/* The program's exit code for this kind of error (2: invalid argument, 3: not found, …). */
MINISGL_API int minisgl_error_code(const minisgl_error* error);
/* Good as long as the error. */
MINISGL_API const char* minisgl_error_message(const minisgl_error* error);
MINISGL_API void minisgl_free_error(minisgl_error* error);
MINISGL_API void minisgl_free_string(char* text);

/* Loads a model. options_json: the fields of minisgl::LLMOptions (minisgl/llm.h), "model" at least.
 */
MINISGL_API minisgl_llm* minisgl_open(const char* options_json, minisgl_error** error);
/* NULL is ignored. No call on the model may be running. */
MINISGL_API void minisgl_close(minisgl_llm* llm);
/* The model, the device and the memory plan, as text. */
MINISGL_API char* minisgl_description(minisgl_llm* llm, minisgl_error** error);

/* A piece of an answer: `output` counts the answers of this call, `text` is whole characters
 * (perhaps none) of `length` bytes, `token` its id or -1. Called in the thread that called
 * minisgl_generate(); returning 0 ends that answer. */
typedef int (*minisgl_piece_callback)(void* user, size_t output, const char* text, size_t length,
                                      int32_t token);

/* request_json: one request or a list of them, batched. A request has "prompt" (text or token ids)
 * or "messages" (objects of role and content), and any field of minisgl::SamplingParams. Returns a
 * list with one object an answer: text, token_ids, finish_reason, prompt_tokens, cached_tokens, and
 * logprobs and prompt_logprobs where asked for. on_piece may be NULL. */
MINISGL_API char* minisgl_generate(minisgl_llm* llm, const char* request_json,
                                   minisgl_piece_callback on_piece, void* user,
                                   minisgl_error** error);

/* text -> list of token ids, as a prompt is encoded; and back. */
MINISGL_API char* minisgl_encode(minisgl_llm* llm, const char* text, minisgl_error** error);
MINISGL_API char* minisgl_decode(minisgl_llm* llm, const char* ids_json, minisgl_error** error);

#ifdef __cplusplus
}
#endif

#endif /* MINISGL_C_H */
