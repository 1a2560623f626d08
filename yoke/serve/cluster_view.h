// What /v1/cluster says and the page draws: nodes and rails as they are cabled, ranks and their memory, the engine's
// state, live rates.
#pragma once
#include <string>

#include "yoke/base/file_tree.h"
#include "yoke/serve/request_hub.h"

namespace yoke::serve {

// `machine` is this one, for what its supervisor does not say.
Document cluster_view(RequestHub& hub, const std::string& model, const FileTree& machine);

}  // namespace yoke::serve
