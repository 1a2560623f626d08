#include "yoke/base/yaml.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke {
namespace {

using NodeKind = Document::Kind;

TEST(Yaml, ReadsBlockAndFlowWithLines) {
  const Document document =
      parse_yaml("# head\nname: desk\nnodes:\n  - { name: a, port: 22 }\n  - name: \"b\"\nnone: ~\n", "c.yaml");
  EXPECT_EQ(document.find("name")->text, "desk");
  EXPECT_EQ(document.find("name")->where, "c.yaml:2");
  const Document& nodes = *document.find("nodes");
  EXPECT_EQ(nodes.items[0].find("port")->kind, NodeKind::kPlain);
  EXPECT_EQ(nodes.items[1].find("name")->kind, NodeKind::kText);
  EXPECT_EQ(nodes.items[1].find("name")->where, "c.yaml:5");
  EXPECT_EQ(document.find("none")->kind, NodeKind::kNull);
  EXPECT_EQ(parse_yaml("", "c.yaml").kind, NodeKind::kNull);
}

// "- - - …": a list in a list in a list.
std::string nested_lists(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += "- ";
  return text;
}

struct Refused {
  const char* name;
  std::string text;
  const char* says;
};

class YamlRefuses : public testing::TestWithParam<Refused> {};
TEST_P(YamlRefuses, WithTheLine) {
  EXPECT_ERROR(parse_yaml(GetParam().text, "c.yaml"), ErrorCode::kInvalid, GetParam().says);
}
INSTANTIATE_TEST_SUITE_P(
    Texts, YamlRefuses,
    testing::Values(Refused{"alias", "a: &x 1\nb: *x\n", "c.yaml:1: anchors"},
                    Refused{"bomb", "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n", "anchors"},
                    Refused{"tag", "a: !!python/object 1\n", "c.yaml:1: tags"},
                    Refused{"merge", "a:\n  <<: {b: 1}\n", "c.yaml:2: merge keys"},
                    Refused{"duplicate", "a: 1\nb: 2\na: 3\n", "c.yaml:3: the key 'a' stands twice"},
                    Refused{"documents", "a: 1\n---\nb: 2\n", "more than one document"},
                    Refused{"mapkey", "{a: 1}: 2\n", "a key must be a word"},
                    Refused{"unclosed", "a: [1, 2\nb: 3\n", "c.yaml:"}, Refused{"tab", "a:\n\t- 1\n", "c.yaml:2"},
                    Refused{"latin1", "a: 1\nb: gr\xfcn\n", "c.yaml:2: this is not UTF-8"},
                    Refused{"nul", std::string("a: 1\nb: \0\n", 10), "c.yaml:2: there is a control character (0x00)"},
                    Refused{"deep", nested_lists(100), "nested more than 32"},
                    Refused{"very_deep", std::string(1000000, '['), "c.yaml:1"},
                    Refused{"block_deep", nested_lists(500000), "c.yaml:1"},
                    Refused{"large", std::string(10 << 20, 'x'), "c.yaml has 10 MiB, more than the 1 MiB"}),
    [](const auto& test) { return test.param.name; });

Document random_value(int depth) {
  const int kind = *rc::gen::inRange(0, depth > 0 ? 3 : 1);
  if (kind == 1) {
    Document list = Document::list();
    for (int n = *rc::gen::inRange(0, 4); n > 0; --n) list.items.push_back(random_value(depth - 1));
    return list;
  }
  if (kind == 2) {
    Document map = Document::map();
    for (int n = *rc::gen::inRange(0, 4); n > 0; --n) {
      map.add(*rc::gen::container<std::string>(rc::gen::inRange<char>(32, 126)) + std::to_string(n),
              random_value(depth - 1));
    }
    return map;
  }
  return Document::string(*rc::gen::container<std::string>(rc::gen::inRange<char>(1, 126)));
}

bool same_text(const Document& a, const Document& b) {
  const auto is_text = [](const Document& d) { return d.kind == NodeKind::kText || d.kind == NodeKind::kPlain; };
  if (is_text(a) && is_text(b)) return a.text == b.text;
  if (a.kind != b.kind || a.items.size() != b.items.size() || a.fields.size() != b.fields.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!same_text(a.items[i], b.items[i])) return false;
  }
  for (std::size_t i = 0; i < a.fields.size(); ++i) {
    if (a.fields[i].first != b.fields[i].first || !same_text(a.fields[i].second, b.fields[i].second)) return false;
  }
  return true;
}

RC_GTEST_PROP(Yaml, PrintedIsReadBackTheSame, ()) {
  const Document document = random_value(4);
  const Document back = parse_yaml(print_yaml(document), "x");
  RC_ASSERT(same_text(back, document));
}

TEST(Yaml, ManyKeysTakeLittleTimeAndOneTwiceIsFound) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "k" + std::to_string(i) + ":\n";
  EXPECT_EQ(parse_yaml(text, "c.yaml").fields.size(), 100'000U);
  try {
    parse_yaml(text + "k17:\n", "c.yaml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "c.yaml:100001: the key 'k17' stands twice");
  }
}

}  // namespace
}  // namespace yoke
