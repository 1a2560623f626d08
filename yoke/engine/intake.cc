#include "yoke/engine/intake.h"

namespace yoke::engine {

bool take_messages(ClientConnection& client, Scheduler& scheduler, Seconds wait) {
  bool account_wanted = false;
  for (ClientMessage& message : client.take(wait)) {
    std::optional<RequestEnded> ended;
    if (auto* const request = std::get_if<Request>(&message)) {
      ended = scheduler.submit(std::move(*request));
    } else if (const auto* const cancel = std::get_if<CancelRequest>(&message)) {
      ended = scheduler.cancel(cancel->id);
    } else if (std::holds_alternative<AccountRequest>(message)) {
      account_wanted = true;
    } else {
      const auto& refused = std::get<RefusedRequest>(message);
      ended = RequestEnded{.id = refused.id, .error = refused.error};
    }
    if (ended) client.send(*ended);
  }
  return account_wanted;
}

}  // namespace yoke::engine
