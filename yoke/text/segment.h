// Text with its origin. A chat template writes the marks that steer a model (<|eot_id|>); a user must not be able to
// write them. So what a template renders is a list of segments, each from the template or from a user's values, and
// the tokenizer finds special tokens only where all their bytes may steer. The segments are tokenized as one text:
// where a user's text begins changes no other token.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::text {

enum class Origin {
  kUser,      // from outside: special tokens in it are plain text
  kTemplate,  // from the model's own files: special tokens in it steer the model
};

struct Segment {
  std::string text;
  Origin origin = Origin::kUser;
  friend bool operator==(const Segment&, const Segment&) = default;
};

std::string joined_text(const std::vector<Segment>& segments);

// Which parts of a text come from where, in order and without gaps.
class OriginRanges {
 public:
  explicit OriginRanges(Origin all) : last_(all) {}
  explicit OriginRanges(const std::vector<Segment>& segments);

  bool all_from_template(std::size_t begin, std::size_t end) const;

 private:
  struct Range {
    std::size_t end;
    Origin origin;
  };
  std::vector<Range> ranges_;
  Origin last_ = Origin::kUser;  // of all that follows the ranges
};

}  // namespace yoke::text
