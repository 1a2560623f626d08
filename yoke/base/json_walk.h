// A JSON text as a row of events, for what is too large to become a Document: a vocabulary of 250,000 tokens takes 3 MB
// in a table and 50 MB as Documents. parse_json (json.h) is a handler of the same events. Strict as there (RFC 8259, no
// NUL byte), and bounded in depth and in the number of values; unique keys are the handler's business.
//
//   struct Names : JsonHandler { void on(JsonEvent& event) override { if (event.kind == JsonEvent::Kind::kKey) … } };
//   walk_json(text, "tokenizer.json", {}, names);
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "yoke/base/document.h"
#include "yoke/base/limits.h"

namespace yoke {

struct JsonEvent {
  enum class Kind {
    kBeginMap,
    kEndMap,
    kBeginList,
    kEndList,
    kKey,    // text
    kText,   // text
    kWhole,  // whole
    kOther,  // scalar: null, a bool, or another number
  };
  Kind kind;
  const std::shared_ptr<const PlaceSource>& places;
  std::uint64_t number;         // of the value among all; of a key or an end the last value's
  std::string* text = nullptr;  // may be moved from
  std::int64_t whole = 0;
  Document* scalar = nullptr;

  TextPlace place() const { return {places, number}; }
};

class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  virtual void on(JsonEvent& event) = 0;
};

struct JsonWalkOptions {
  std::uint64_t values_max = limits::kJsonValues;
};

// The text is kept as long as a place of it is.
void walk_json(std::shared_ptr<const std::string> text, std::string_view source, JsonWalkOptions options,
               JsonHandler& handler);

// Makes a Document of the events of one value. Keys must be unique.
class DocumentBuilder : public JsonHandler {
 public:
  DocumentBuilder();
  ~DocumentBuilder() override;
  void on(JsonEvent& event) override;
  bool is_complete() const;
  Document take();

 private:
  struct Building;
  Document* put(const JsonEvent& event, Document value);
  void check_key(const JsonEvent& event);

  std::unique_ptr<Building> building_;
};

}  // namespace yoke
