// What `yoke serve --check` looks at: the address, the keys, the memory of each node, the server behind. Throws what
// would end the start.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "yoke/base/document.h"
#include "yoke/base/socket.h"
#include "yoke/plan/planner.h"
#include "yoke/serve/engine_host.h"

namespace yoke::serve {

// Error(kConflict) where another program listens there; what is wrong with the file of keys.
void add_front_check(Document& found, const Endpoint& listen, const std::optional<std::string>& key_file);
// Error(kExhausted) where the plan does not fit, or a node has less memory free than its rank needs.
void add_memory_check(Document& found, const EngineHostSpec& spec, const std::optional<plan::Plan>& made);
// What /v1/models of the other server says.
void add_upstream_check(Document& found, const Endpoint& server, const std::string& key);
std::string check_text(const Document& found);

}  // namespace yoke::serve
