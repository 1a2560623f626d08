// A beacon as a field of other structs (fields.h), for .cc files.
#pragma once
#include "yoke/base/fields.h"
#include "yoke/link/beacon.h"

namespace yoke {

inline void read_field(const Document& document, Beacon& beacon) { beacon = beacon_from_json(document); }
inline void write_field(Document& document, const Beacon& beacon) { document = to_json(beacon); }

}  // namespace yoke
