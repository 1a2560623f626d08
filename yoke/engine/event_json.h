// The events that are rare, as JSON: loading, readiness, recoveries and errors. Readable in a capture of the line.
#pragma once
#include "yoke/base/document.h"
#include "yoke/engine/request.h"

namespace yoke::engine {

// A map of one key, the kind of the event.
Document event_to_json(const LoadProgress& progress);
Document event_to_json(const EngineReady& ready);
Document event_to_json(const RequestEnded& ended);
Document event_to_json(const EngineRecovered& recovered);
Document event_to_json(const RequestAlone& alone);
Document event_to_json(const EngineAccount& account);
Document event_to_json(const EngineFailed& failed);
EngineEvent event_from_json(Document document);  // Error(kInvalid) where it is none of these

}  // namespace yoke::engine
