// HTTP requests for model downloads, over libcurl.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minisgl {

struct HttpOptions {
  int timeout_s = 30;               // to connect, and without a single byte arriving
  std::string token;                // sent as "Authorization: Bearer …" to `token_origin` only
  std::string token_url;            // any URL of the host that may see the token
  std::string cookie;               // "name=value"; goes where the token goes
  std::string ca_file;              // PEM file of trusted authorities; "" is the system's
  std::function<bool()> cancelled;  // asked often while waiting; may be empty
};

struct HttpResponse {
  int status = 0;
  std::string url;                             // of this response, redirects followed
  std::map<std::string, std::string> headers;  // names in lower case, the last of equal ones
  std::string body;                            // of errors at most 64 KiB are kept

  std::optional<std::string> header(const std::string& lower_case_name) const;
};

// No answer came, or it broke off: name resolution, connection, TLS, time-out.
// Thrown inside the loader only; with_retries() turns it into an Error.
struct TransportError {
  std::string message;
  bool worth_retrying;
};

// "https://host:port" in lower case with the port written out; "" where `url` is not http(s).
std::string url_origin(const std::string& url);
// `location` (absolute or relative) as seen from `base`; "" if that is not a URL.
std::string url_resolve(const std::string& base, const std::string& location);
// For messages: no user, password or query, which may hold secrets.
std::string url_for_display(const std::string& url);
// Everything but unreserved characters becomes %XX; with keep_slash "/" stays.
std::string url_encode(std::string_view text, bool keep_slash = false);
// Readable text of a server: control characters replaced, at most 300 bytes.
std::string printable(std::string_view text);

// One connection pool; redirects are followed at most ten times, to http(s) only, never from https
// to http, and the token is sent to its own origin only. Thread: one at a time; make one a thread.
// Every method throws TransportError, or Error kCancelled.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // The whole body, refused with Error kNetwork when larger than max_bytes.
  HttpResponse get(const std::string& url, size_t max_bytes);
  // Redirects are followed within the origin of `url`; one to elsewhere is returned as it came.
  HttpResponse head(const std::string& url);
  // The body of a 2xx answer goes to `sink` in pieces, after `begin` was called with the head.
  // What they throw ends the transfer and comes out here. Other answers come back with their body.
  HttpResponse stream(const std::string& url, const std::vector<std::string>& headers,
                      const std::function<void(const HttpResponse& head)>& begin,
                      const std::function<void(std::string_view piece)>& sink);

  const HttpOptions& options() const { return options_; }

 private:
  struct Transfer;
  HttpResponse run(Transfer& transfer);
  HttpResponse follow(Transfer& transfer);

  HttpOptions options_;
  std::unique_ptr<void, void (*)(void*)> curl_;
};

}  // namespace minisgl
