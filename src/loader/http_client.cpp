#include "loader/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <exception>

#include "utils/error.h"

namespace minisgl {
namespace {

constexpr int kMaxRedirects = 10;
constexpr size_t kMaxErrorBody = size_t{64} << 10;
constexpr size_t kMaxHeaders = 200;

struct UrlCleanup {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, UrlCleanup>;

struct ListCleanup {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, ListCleanup>;

void append_header(HeaderList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (!longer) throw_error(ErrorKind::kResource, "out of memory for an HTTP header");
  (void)list.release();
  list.reset(longer);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

Url parse_url(const std::string& text) {
  Url url(curl_url());
  if (!url || curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return nullptr;
  return url;
}

std::string url_part(CURLU* url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string out(text);
  curl_free(text);
  return out;
}

bool is_redirect(const HttpResponse& response) {
  const int s = response.status;
  return (s == 301 || s == 302 || s == 303 || s == 307 || s == 308) && response.header("location");
}

bool worth_retrying(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

CURL* new_curl() {
  // Thread-safe and done once; libcurl keeps this for the life of the process.
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  CURL* curl = initialised == CURLE_OK ? curl_easy_init() : nullptr;
  if (!curl) throw_error(ErrorKind::kResource, "libcurl could not be initialised");
  return curl;
}

}  // namespace

std::optional<std::string> HttpResponse::header(const std::string& lower_case_name) const {
  const auto found = headers.find(lower_case_name);
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

std::string url_origin(const std::string& url) {
  const Url parsed = parse_url(url);
  if (!parsed) return "";
  const std::string scheme = lower(url_part(parsed.get(), CURLUPART_SCHEME));
  if (scheme != "http" && scheme != "https") return "";
  return fmt::format("{}://{}:{}", scheme, lower(url_part(parsed.get(), CURLUPART_HOST)),
                     url_part(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
}

std::string url_resolve(const std::string& base, const std::string& location) {
  const Url parsed = parse_url(base);
  if (!parsed ||
      curl_url_set(parsed.get(), CURLUPART_URL, location.c_str(), CURLU_URLENCODE) != CURLUE_OK) {
    return "";
  }
  return url_part(parsed.get(), CURLUPART_URL);
}

std::string url_for_display(const std::string& url) {
  const Url parsed = parse_url(url);
  if (!parsed) return printable(url.substr(0, url.find('?')));
  for (const CURLUPart part : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY}) {
    curl_url_set(parsed.get(), part, nullptr, 0);
  }
  return printable(url_part(parsed.get(), CURLUPART_URL));
}

std::string url_encode(std::string_view text, bool keep_slash) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x80 && std::isalnum(byte)) || c == '-' || c == '.' || c == '_' || c == '~' ||
        (keep_slash && c == '/')) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out(trim(text).substr(0, 300));
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
  }
  return out;
}

struct HttpClient::Transfer {
  std::string url;
  bool head_only = false;
  bool leave_origin = true;  // follow redirects to other hosts
  size_t max_bytes = 0;      // of a kept body
  const std::vector<std::string>* extra_headers = nullptr;
  const std::function<void(const HttpResponse&)>* begin = nullptr;
  const std::function<void(std::string_view)>* sink = nullptr;

  HttpResponse response;
  bool begun = false;
  std::exception_ptr thrown;
  const std::function<bool()>* cancelled = nullptr;

  bool streams() const { return sink && response.status / 100 == 2; }

  void header_line(std::string_view line) {
    if (line.starts_with("HTTP/")) {  // also after an interim "100 Continue"
      response.headers.clear();
      response.status = 0;
      const size_t space = line.find(' ');
      if (space != line.npos) response.status = std::atoi(std::string(line.substr(space)).c_str());
      return;
    }
    const size_t colon = line.find(':');
    if (colon == line.npos || response.headers.size() >= kMaxHeaders) return;
    response.headers[lower(trim(line.substr(0, colon)))] =
        std::string(trim(line.substr(colon + 1)));
  }

  void ensure_begun() {
    if (begun || !streams()) return;
    begun = true;
    (*begin)(response);
  }

  void body_piece(std::string_view piece) {
    if (is_redirect(response)) return;
    if (streams()) {
      ensure_begun();
      (*sink)(piece);
    } else if (response.status / 100 != 2) {
      response.body.append(
          piece.substr(0, kMaxErrorBody - std::min(kMaxErrorBody, response.body.size())));
    } else if (response.body.size() + piece.size() > max_bytes) {
      throw_error(ErrorKind::kNetwork, "{}: the answer is larger than the {} bytes expected of it",
                  url_for_display(url), max_bytes);
    } else {
      response.body.append(piece);
    }
  }

  // libcurl is C: an exception waits here until it has returned.
  template <class F>
  bool guarded(F&& f) {
    try {
      f();
      return true;
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
};

namespace {

template <class T>
size_t on_header(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<T*>(user);
  const bool ok = transfer->guarded([&] { transfer->header_line({data, size * count}); });
  return ok ? size * count : 0;
}

template <class T>
size_t on_body(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<T*>(user);
  const bool ok = transfer->guarded([&] { transfer->body_piece({data, size * count}); });
  return ok ? size * count : 0;
}

template <class T>
int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto* transfer = static_cast<T*>(user);
  bool stop = false;
  const bool ok =
      transfer->guarded([&] { stop = *transfer->cancelled && (*transfer->cancelled)(); });
  return stop || !ok ? 1 : 0;
}

}  // namespace

HttpClient::HttpClient(HttpOptions options)
    : options_(std::move(options)), curl_(new_curl(), curl_easy_cleanup) {}

HttpClient::~HttpClient() = default;

// One request, one response: no redirect is followed here.
HttpResponse HttpClient::run(Transfer& transfer) {
  CURL* curl = curl_.get();
  curl_easy_reset(curl);
  transfer.cancelled = &options_.cancelled;
  transfer.response = HttpResponse();
  transfer.response.url = transfer.url;
  transfer.begun = false;

  HeaderList headers;
  append_header(headers, "Accept-Encoding: identity");  // sizes and offsets are those of the file
  if (!options_.token_url.empty() && url_origin(transfer.url) == url_origin(options_.token_url)) {
    if (!options_.token.empty()) append_header(headers, "Authorization: Bearer " + options_.token);
    if (!options_.cookie.empty()) append_header(headers, "Cookie: " + options_.cookie);
  }
  if (transfer.extra_headers) {
    for (const std::string& line : *transfer.extra_headers) append_header(headers, line);
  }

  char error[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, transfer.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "minisgl");
  curl_easy_setopt(curl, CURLOPT_NOBODY, transfer.head_only ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options_.timeout_s));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.timeout_s));
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L << 10);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &on_header<Transfer>);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &on_body<Transfer>);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &on_progress<Transfer>);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  if (!options_.ca_file.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, options_.ca_file.c_str());
  }

  const CURLcode code = curl_easy_perform(curl);
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (code == CURLE_ABORTED_BY_CALLBACK) {
    throw_error(ErrorKind::kCancelled, "the download was cancelled");
  }
  if (code != CURLE_OK) {
    throw TransportError{printable(error[0] ? error : curl_easy_strerror(code)),
                         worth_retrying(code)};
  }
  transfer.ensure_begun();  // an empty body
  return transfer.response;
}

HttpResponse HttpClient::follow(Transfer& transfer) {
  const std::string first_origin = url_origin(transfer.url);
  for (int hops = 0; hops <= kMaxRedirects; ++hops) {
    HttpResponse response = run(transfer);
    if (!is_redirect(response)) return response;
    const std::string next = url_resolve(transfer.url, *response.header("location"));
    const std::string origin = url_origin(next);
    if (origin.empty() || (first_origin.starts_with("https:") && !origin.starts_with("https:"))) {
      throw_error(ErrorKind::kNetwork,
                  "{}: redirected to '{}'; expected an http(s) address no less secure",
                  url_for_display(transfer.url), url_for_display(next));
    }
    if (!transfer.leave_origin && origin != first_origin) return response;
    transfer.url = next;
  }
  throw_error(ErrorKind::kNetwork, "{}: more than {} redirects", url_for_display(transfer.url),
              kMaxRedirects);
}

HttpResponse HttpClient::get(const std::string& url, size_t max_bytes) {
  Transfer transfer;
  transfer.url = url;
  transfer.max_bytes = max_bytes;
  return follow(transfer);
}

HttpResponse HttpClient::head(const std::string& url) {
  Transfer transfer;
  transfer.url = url;
  transfer.head_only = true;
  transfer.leave_origin = false;
  return follow(transfer);
}

HttpResponse HttpClient::stream(const std::string& url, const std::vector<std::string>& headers,
                                const std::function<void(const HttpResponse&)>& begin,
                                const std::function<void(std::string_view)>& sink) {
  Transfer transfer;
  transfer.url = url;
  transfer.extra_headers = &headers;
  transfer.begin = &begin;
  transfer.sink = &sink;
  return follow(transfer);
}

}  // namespace minisgl
