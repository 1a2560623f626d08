// A model of a Hugging Face Hub, or of any server that speaks its protocol: what it holds, and its download.
// docs/prep.md describes what a user sees.
//
//   const Hub hub = hub_of_environment();
//   const HubModel model = describe_model(hub, "org/name", "main");
//   download_model(hub, model, "/models/name", {});
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/error.h"
#include "yoke/http/curl.h"

namespace yoke::launch {

struct Hub {
  http::Url endpoint;
  std::string token;  // empty: none. Only ever sent to the endpoint's own host
};
// HF_ENDPOINT, else huggingface.co; HF_TOKEN, HUGGING_FACE_HUB_TOKEN, or the file that the Hub's own tools write.
Hub hub_of_environment();

struct HubFile {
  std::string path;
  std::uint64_t size = 0;
  std::string sha256;  // of large files
  std::string git;     // of the others: SHA-1 as git has it
  friend bool operator==(const HubFile&, const HubFile&) = default;
};

struct HubModel {
  std::string id, commit;
  std::string gate;     // "auto", "manual"; empty: open
  std::string licence;  // empty: not stated
  std::vector<HubFile> files;
  std::uint64_t bytes() const;
};

// Throws Error(kInvalid) for a name that would leave the folder, for two names that differ in case only, and for sizes
// or hashes that make no sense.
HubModel parse_hub_model(const Document& answer, const std::string& id);
HubModel describe_model(const Hub& hub, const std::string& id, const std::string& revision);

// Whether a name fits a pattern with '*' and '?', as shells have it; '*' takes '/' too.
bool fits_pattern(std::string_view name, std::string_view pattern);

struct DownloadOptions {
  int parallel = 4;
  std::uint64_t piece = 64ULL << 20;  // bytes of one request
  int tries = 6;                      // without progress
  Seconds pause{1};                   // before the second try, doubled each time
  std::function<void(std::uint64_t done, std::string_view file)> on_progress = {};
};

// Into FOLDER.partial, which a later call continues, then renamed: FOLDER is complete or not there. Every file is
// checked by its size and hash.
void download_model(const Hub& hub, const HubModel& model, const std::filesystem::path& folder,
                    const DownloadOptions& options);

// What an answer of the Hub that is no success means for a person.
Error hub_error(const http::CurlAnswer& answer, const Hub& hub, const std::string& what);

std::string sha1_hex(std::string_view data);
std::string git_blob_hash(const std::filesystem::path& file);

}  // namespace yoke::launch
