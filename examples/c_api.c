/* The C API: loads a model, streams an answer, prints what it was.
 *
 *   c_api MODEL "What is the capital of France?"
 */
#include <minisgl/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_piece(void* user, size_t output, const char* text, size_t length, int32_t token) {
  (void)user, (void)output, (void)token;
  fwrite(text, 1, length, stdout);
  fflush(stdout);
  return 1; /* go on */
}

/* text as a JSON string in `out`, which holds 6 bytes for each of its bytes and 3 more. */
static void quote(const char* text, char* out) {
  *out++ = '"';
  for (; *text != '\0'; ++text) {
    if ((unsigned char)*text < 0x20 || *text == '"' || *text == '\\') {
      out += sprintf(out, "\\u%04x", (unsigned)(unsigned char)*text);
    } else {
      *out++ = *text;
    }
  }
  *out++ = '"';
  *out = '\0';
}

static int fail(minisgl_error* error) {
  const int code = minisgl_error_code(error);
  fprintf(stderr, "c_api: %s\n", minisgl_error_message(error));
  minisgl_free_error(error);
  return code;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: c_api MODEL MESSAGE\n");
    return 2;
  }
  minisgl_error* error = NULL;
  char* quoted = malloc(6 * (strlen(argv[1]) + strlen(argv[2])) + 3);
  char* json = malloc(6 * (strlen(argv[1]) + strlen(argv[2])) + 200);
  if (quoted == NULL || json == NULL) return 6;

  quote(argv[1], quoted);
  sprintf(json, "{\"model\": %s, \"max_seq_len\": 1024}", quoted);
  minisgl_llm* llm = minisgl_open(json, &error);
  if (llm == NULL) return fail(error);

  quote(argv[2], quoted);
  sprintf(json, "{\"messages\": [{\"role\": \"user\", \"content\": %s}], \"max_tokens\": 64}",
          quoted);
  char* answer = minisgl_generate(llm, json, print_piece, NULL, &error);
  if (answer == NULL) return fail(error);
  printf("\n%s\n", answer);

  minisgl_free_string(answer);
  minisgl_close(llm);
  free(json);
  free(quoted);
  return 0;
}
