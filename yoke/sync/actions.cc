#include "yoke/sync/actions.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>

#include "yoke/base/error.h"
#include "yoke/sync/messages.h"

namespace yoke::sync {
namespace {

// Kept from prepare_folder to finish_folder.
struct Receiving {
  std::unique_ptr<Receiver> receiver;
};

Receiver& receiver_of(agent::AgentContext& context) {
  Receiving& receiving = context.state<Receiving>();
  if (!receiving.receiver) throw Error(ErrorCode::kInvalid, "no copy was prepared here");
  return *receiving.receiver;
}

// The number of bytes, some times a second.
std::function<void(std::uint64_t)> report_to(agent::AgentContext& context) {
  struct Last {
    std::mutex mutex;
    Instant at{};
  };
  return [&context, last = std::make_shared<Last>()](std::uint64_t bytes) {
    const std::lock_guard lock(last->mutex);
    const Instant now = real_clock().now();
    if (to_seconds(now - last->at) < Seconds{0.25}) return;
    last->at = now;
    context.progress(fmt::format("{}", bytes));
  };
}

}  // namespace

Document list_folder(const Document& question, agent::AgentContext&) {
  return to_document(list_files(from_json<std::string>(question)));
}

Document find_files(const Document& question, agent::AgentContext&) {
  const auto asked = from_json<FolderFiles>(question);
  std::vector<Present> found;
  for (const FileSize& file : asked.files) {
    check_inside(file.path);
    found.push_back(find_present(asked.folder, file));
  }
  return to_document(found);
}

Document hash_folder(const Document& question, agent::AgentContext& context) {
  const auto asked = from_json<FolderFiles>(question);
  for (const FileSize& file : asked.files) check_inside(file.path);
  return to_document(hash_files(asked.folder, asked.files, report_to(context)));
}

Document prepare_folder(const Document& question, agent::AgentContext& context) {
  Receiving& receiving = context.state<Receiving>();
  receiving.receiver = std::make_unique<Receiver>(from_json<ReceiverPlan>(question));
  return to_document(receiving.receiver->ports());
}

Document receive_files(const Document&, agent::AgentContext& context) {
  receiver_of(context).receive();
  return Document::null();
}

Document send_files(const Document& question, agent::AgentContext& context) {
  return to_document(send_pieces(from_json<SenderPlan>(question), report_to(context)));
}

Document finish_folder(const Document&, agent::AgentContext& context) {
  receiver_of(context).finish();
  return Document::null();
}

}  // namespace yoke::sync
