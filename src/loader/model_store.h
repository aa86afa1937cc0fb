// What a hub, or the cache of one, looks like to the code that picks a model's files.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "loader/hub.h"
#include "loader/hub_names.h"

namespace minisgl {

// One revision of one repository. Thread: one at a time.
class ModelStore {
 public:
  ModelStore() = default;
  ModelStore(const ModelStore&) = delete;
  ModelStore& operator=(const ModelStore&) = delete;
  virtual ~ModelStore() = default;
  // Every file of the revision, as safe relative paths.
  virtual const std::vector<std::string>& listing() const = 0;
  // Afterwards folder()/file exists for each of them.
  virtual void fetch(const std::vector<std::string>& files) = 0;
  virtual std::string folder() const = 0;
};

// Fetches what makes up the model and returns its folder or GGUF file. gguf: as in HubName.
// `where` begins the messages. Errors: kNotFound and kUnsupported name the missing file; fetch()'s.
std::string fetch_model(ModelStore& store, const std::string& gguf, const std::string& where);

// What lies in a folder and nothing else: fetch() does nothing.
class FolderStore : public ModelStore {
 public:
  explicit FolderStore(std::string folder);
  const std::vector<std::string>& listing() const override { return listing_; }
  void fetch(const std::vector<std::string>&) override {}
  std::string folder() const override { return folder_; }

 private:
  std::string folder_;
  std::vector<std::string> listing_;
};

// Both find `name` in their cache, and download where that is allowed. name.revision is resolved.
std::string resolve_on_hugging_face(const HubName& name, const HubOptions& options);
std::string resolve_on_model_scope(const HubName& name, const HubOptions& options);

// Adds up the bytes of the files that are fetched together. Thread-safe.
class TransferCount {
 public:
  TransferCount(std::string id, size_t files, uint64_t total, const HubOptions& options);
  // `file` has `bytes` on disk so far.
  void set(size_t file, uint64_t bytes);
  void file_done();

 private:
  void report();  // mutex_ is held

  const std::string id_;
  const uint64_t total_;
  const HubOptions& options_;
  std::mutex mutex_;
  std::vector<uint64_t> bytes_;
  size_t files_done_ = 0;
};

// "ORG/REPO@REVISION", which begins messages.
std::string describe(const HubName& name);
// The list that a server sent, checked. Errors: kBadFile for a name that would leave its folder.
std::vector<std::string> checked_listing(std::vector<std::string> names, const std::string& where);
// The options of a client that shows the token to the endpoint alone.
HttpOptions http_options(const HubOptions& options);
// mkdir -p. Errors: kResource.
void make_folders(const std::string& path);
// Tells the caller, where it listens.
void tell(const HubOptions& options, const std::string& line);

}  // namespace minisgl
