// The download of a model: ranges, redirects, retries, hashes.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/launch/hub.h"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;

struct Source {
  std::string url;
  bool own_host = true;  // the token goes there
};

[[noreturn]] void refuse_changed(const HubFile& file, std::string_view why) {
  throw Error(ErrorCode::kInvalid, fmt::format("{} is not what the Hub listed: {}", printable(file.path, 80), why),
              "start the download again; if it stays so, the server is at fault");
}

class FileDownload {
 public:
  FileDownload(const Hub& hub, const HubModel& model, const HubFile& file, const fs::path& folder,
               const DownloadOptions& options, std::atomic<std::uint64_t>& done, const std::atomic<bool>& ends)
      : hub_(hub),
        model_(model),
        file_(file),
        options_(options),
        done_(done),
        ends_(ends),
        target_(folder / file.path) {
    const std::string hash = file.sha256.empty() ? file.git : file.sha256;
    part_ = folder / ".parts" / (sha256_hex(file.path).substr(0, 16) + "-" + hash.substr(0, 16));
    piece_ = part_.native() + ".piece";
  }

  void run() {
    if (is_right(target_)) {
      done_ += file_.size;
      return;
    }
    std::error_code failure;
    have_ = fs::file_size(part_, failure);
    if (failure || have_ > file_.size) restart();
    done_ += have_;
    for (int wrong = 0;; ++wrong) {
      fetch_rest();
      if (is_right(part_)) break;
      done_ -= have_;
      restart();
      if (wrong == 1) refuse_changed(file_, "its hash is another, twice");
    }
    make_folder(target_.parent_path());
    fs::rename(part_, target_);
    fs::remove(piece_, failure);
  }

 private:
  bool is_right(const fs::path& path) const {
    std::error_code failure;
    if (fs::file_size(path, failure) != file_.size || failure) return false;
    return file_.sha256.empty() ? git_blob_hash(path) == file_.git : sha256_file_hex(path) == file_.sha256;
  }

  void restart() {
    have_ = 0;
    open_file(part_, O_WRONLY | O_CREAT | O_TRUNC);
  }

  // How long to wait before the next try; throws after too many.
  void pause_after(const http::CurlAnswer& answer) {
    if (++tries_ >= options_.tries) throw hub_error(answer, hub_, model_.id);
    const std::string reported = answer.answer.header("retry-after").value_or("");
    const double wanted = reported.empty() ? options_.pause.value * static_cast<double>(1 << std::min(tries_ - 1, 6))
                                           : std::min(std::strtod(reported.c_str(), nullptr), 300.0);
    const Deadline deadline = Deadline::after(Seconds{wanted});
    while (!deadline.expired() && !ends_) {
      throw_if_interrupted();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    source_.reset();
  }

  // An absolute address on another host is signed: it gets no token of ours, and is asked only once more when it ends.
  std::optional<Source> find_source() {
    std::string url = fmt::format("{}://{}{}/{}/resolve/{}/{}", hub_.endpoint.scheme, hub_.endpoint.host,
                                  hub_.endpoint.path == "/" ? "" : hub_.endpoint.path, http::quote_path(model_.id),
                                  model_.commit, http::quote_path(file_.path));
    for (int hops = 0; hops < 5; ++hops) {
      const http::CurlAnswer answer = http::fetch({.url = url, .headers = headers_for(true), .head_only = true});
      const int status = answer.answer.status;
      if (status == 200) return check_listed(answer), Source{url, true};
      if (status == 429 || status >= 500 || status == 408) {
        pause_after(answer);
        return std::nullopt;
      }
      if (status < 300 || status >= 400) throw hub_error(answer, hub_, model_.id);
      check_listed(answer);
      const auto here = http::parse_url(url);
      const auto there = http::resolve_location(*here, answer.answer.header("location").value_or(""));
      if (!there) refuse_changed(file_, "the server redirects to no address");
      if (there->host != hub_.endpoint.host) return Source{http::to_string(*there), false};
      url = http::to_string(*there);
    }
    refuse_changed(file_, "the server redirects without end");
  }

  void check_listed(const http::CurlAnswer& answer) const {
    const auto commit = answer.answer.header("x-repo-commit");
    if (commit && *commit != model_.commit) refuse_changed(file_, "it is of another commit");
    const auto size = answer.answer.header("x-linked-size");
    if (size && *size != std::to_string(file_.size)) refuse_changed(file_, fmt::format("its size is {} now", *size));
  }

  std::vector<std::string> headers_for(bool own_host) const {
    std::vector<std::string> headers = {"accept-encoding: identity"};
    if (own_host && !hub_.token.empty()) headers.push_back("authorization: Bearer " + hub_.token);
    return headers;
  }

  void fetch_rest() {
    while (have_ < file_.size) {
      if (ends_) throw Error(ErrorCode::kInterrupted, "another file failed");
      if (!source_) source_ = find_source();
      if (source_) fetch_piece();
    }
  }

  void fetch_piece() {
    const std::uint64_t last = std::min(have_ + options_.piece, file_.size) - 1;
    std::error_code failure;
    fs::remove(piece_, failure);
    const auto fetched = try_to([&] {
      return http::fetch({.url = source_->url,
                          .headers = headers_for(source_->own_host),
                          .range = std::pair{have_, last},
                          .output = piece_});
    });
    if (!fetched) {  // no response at all: a cut connection
      if (fetched.error().code() == ErrorCode::kInterrupted || fetched.error().code() == ErrorCode::kPermission) {
        throw Error(fetched.error());
      }
      return pause_after({.answer = {}, .exit_status = 1, .problem = fetched.error().message()});
    }
    const int status = fetched->answer.status;
    if (status == 206) return take_range(*fetched, last);
    if (status == 200) return take_whole(*fetched);
    if (status == 416) refuse_changed(file_, "the server has fewer bytes");
    const bool ended = !source_->own_host && (status == 403 || status == 401);  // its signature
    if (ended || status == 429 || status >= 500 || status == 408) return pause_after(*fetched);
    throw hub_error(*fetched, hub_, model_.id);
  }

  // "bytes 0-99/1000"
  void take_range(const http::CurlAnswer& answer, std::uint64_t last) {
    const std::string range = answer.answer.header("content-range").value_or("");
    const std::string wanted = fmt::format("bytes {}-", have_);
    if (!range.starts_with(wanted)) refuse_changed(file_, "the server sent another part");
    const std::size_t slash = range.rfind('/');
    if (slash != std::string::npos && range.substr(slash + 1) != std::to_string(file_.size)) {
      refuse_changed(file_, fmt::format("the server reports {} bytes", printable(range.substr(slash + 1), 20)));
    }
    append_piece(last - have_ + 1, answer);
  }

  // The server knows no ranges: this is the file from its beginning.
  void take_whole(const http::CurlAnswer& answer) {
    done_ -= have_;
    restart();
    append_piece(file_.size, answer);
    if (!answer.is_complete()) pause_after(answer);  // it will begin again
  }

  void append_piece(std::uint64_t most, const http::CurlAnswer& answer) {
    std::error_code failure;
    const std::uint64_t came = fs::exists(piece_, failure) ? fs::file_size(piece_, failure) : 0;
    if (came > most) refuse_changed(file_, "the server sent more than was asked for");
    if (came == 0) return pause_after(answer);
    const UniqueFd from = open_file(piece_, O_RDONLY);
    const UniqueFd to = open_file(part_, O_WRONLY | O_APPEND | O_CREAT);
    std::string buffer(1 << 20, '\0');
    while (const std::size_t size = read_some(from, buffer.data(), buffer.size(), piece_)) {
      write_all(to, std::string_view(buffer).substr(0, size), part_);
    }
    have_ += came;
    done_ += came;
    tries_ = 0;
    if (!answer.is_complete()) source_.reset();
  }

  const Hub& hub_;
  const HubModel& model_;
  const HubFile& file_;
  const DownloadOptions& options_;
  std::atomic<std::uint64_t>& done_;
  const std::atomic<bool>& ends_;
  fs::path target_, part_, piece_;
  std::optional<Source> source_;
  std::uint64_t have_ = 0;
  int tries_ = 0;
};

}  // namespace

void download_model(const Hub& hub, const HubModel& model, const fs::path& folder, const DownloadOptions& options) {
  const fs::path partial = folder.native() + ".partial";
  make_folder(partial / ".parts");
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::size_t> next{0};
  std::atomic<bool> ends{false};
  std::atomic<int> running{0};
  std::mutex mutex;
  std::optional<Error> first;
  const auto work = [&] {
    for (std::size_t i = next++; i < model.files.size() && !ends; i = next++) {
      const auto fetched =
          try_to([&] { FileDownload(hub, model, model.files[i], partial, options, done, ends).run(); });
      if (fetched) continue;
      const std::lock_guard lock(mutex);
      if (!first) first = fetched.error();
      ends = true;
    }
    --running;
  };
  std::vector<std::thread> threads;
  running = std::max(1, options.parallel);
  for (int i = 0; i < std::max(1, options.parallel); ++i) threads.emplace_back(work);
  while (running > 0) {
    if (options.on_progress) options.on_progress(done, "");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (std::thread& thread : threads) thread.join();
  if (first) throw Error(*first);
  fs::remove_all(partial / ".parts");
  fs::rename(partial, folder);
}

}  // namespace yoke::launch
