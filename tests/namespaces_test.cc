// A folder is a namespace: yoke/link is yoke::link, yoke/comm/direct is yoke::comm::direct, and yoke/base is yoke
// itself. So two folders may use one name, and within a namespace no type is defined twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "tests/program.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;

struct Block {
  std::string name;  // "yoke::link"; empty: unnamed
  std::vector<std::string> lines;
};

// The namespaces that begin in the first column, with the lines inside. One that is opened in another is a block of its
// own, by its whole name; an unnamed one as well.
std::vector<Block> namespace_blocks(const std::string& text) {
  static const std::regex opening(R"(^namespace ([\w:]*) ?\{(.*\})?$)");
  std::vector<Block> blocks;
  std::vector<std::size_t> open;
  for (const std::string& line : split(text, '\n')) {
    std::smatch match;
    if (std::regex_match(line, match, opening)) {
      const std::string inner = match[1];
      const std::string outer = open.empty() ? "" : blocks[open.back()].name;
      blocks.push_back({inner.empty() ? "" : outer.empty() ? inner : outer + "::" + inner, {}});
      if (!match[2].matched) open.push_back(blocks.size() - 1);
    } else if (!open.empty() && (line.starts_with("}  // namespace") || line == "}")) {
      // A function of the first column ends by "}" too; a block of forward declarations has none.
      const bool forward =
          line == "}" && std::ranges::none_of(blocks[open.back()].lines, [](const std::string& inside) {
            return inside.find('{') != std::string::npos;
          });
      if (line != "}" || forward) open.pop_back();
    } else if (!open.empty()) {
      blocks[open.back()].lines.push_back(line);
    }
  }
  return blocks;
}

// "yoke/comm/direct/wire.h" -> "yoke::comm::direct"
std::string namespace_of(const std::string& file) {
  std::vector<std::string> parts = split(file, '/');
  parts.pop_back();
  if (parts.front() == "tests") return "yoke::tests";
  std::string name = "yoke";
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] != "base") name += "::" + parts[i];
  }
  return name;
}

std::vector<std::string> files_with_namespaces() {
  std::vector<std::string> files;
  for (const char* folder : {"yoke", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kSourceFolder / folder)) {
      const std::string extension = entry.path().extension();
      if (entry.is_regular_file() &&
          (extension == ".h" || extension == ".cc" || extension == ".cu" || extension == ".cuh")) {
        files.push_back(fs::relative(entry.path(), kSourceFolder));
      }
    }
  }
  return files;
}

// What a file may add to another folder's namespace: forward declarations, and the fields of a type, which templates
// look up where the type is.
bool is_guest(const Block& block) {
  static const std::regex allowed(
      "^$|^ .*|^//.*|^[})].*|^(class|struct) \\w+;.*|^template <class Visitor>$|"
      "^(inline )?(constexpr auto|void) (visit_fields|enum_names)\\(.*");
  return std::ranges::all_of(block.lines, [](const std::string& line) { return std::regex_match(line, allowed); });
}

bool is_within(const std::string& name, const std::string& outer) {
  return name == outer || name.starts_with(outer + "::");
}

TEST(Namespaces, OfAFileIsThatOfItsFolder) {
  for (const std::string& file : files_with_namespaces()) {
    const std::string own = namespace_of(file);
    // The public part of comm/direct is comm's.
    const std::string outer = file.starts_with("yoke/comm/direct/") ? "yoke::comm" : own;
    for (const Block& block : namespace_blocks(read_file(kSourceFolder / file))) {
      if (block.name.empty() || is_within(block.name, outer)) continue;
      EXPECT_TRUE(block.name.starts_with("yoke") && is_guest(block))
          << file << " opens " << block.name << ", not " << own;
    }
  }
}

// The types that are defined in the first column: "Rail", "Server::Core", and of a template's specialization
// "Kernel<int>". A line with `template <…>` may come before, or begin the line.
std::vector<std::string> types_defined(const Block& block) {
  static const std::regex head(
      R"(^(?:template <.*> )?(?:struct|class|union|enum class|enum struct|enum) ((?:alignas\(.*?\) |\[\[.*?\]\] )*))"
      R"((\w+(?:<.*?>)?(?:::\w+)*)( final)?( :(?!:)[^{;]*)?( \{.*)?$)");
  std::vector<std::string> types;
  for (std::size_t i = 0; i < block.lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_match(block.lines[i], match, head)) continue;
    // A list of bases may take several lines; a function that returns a `struct stat` has its parenthesis here.
    bool opens = match[5].matched;
    for (std::size_t j = i; !opens && match[4].matched && j < block.lines.size(); ++j) {
      opens = block.lines[j].ends_with('{');
      if (block.lines[j].find(';') != std::string::npos) break;
    }
    if (opens) types.push_back(match[2]);
  }
  return types;
}

TEST(Namespaces, DefineNoTypeTwice) {
  std::map<std::string, std::string> homes;
  for (const std::string& file : files_with_namespaces()) {
    for (const Block& block : namespace_blocks(read_file(kSourceFolder / file))) {
      if (block.name.empty()) continue;
      for (const std::string& name : types_defined(block)) {
        const std::string type = block.name + "::" + name;
        const auto [there, is_new] = homes.emplace(type, file);
        EXPECT_TRUE(is_new) << type << " is defined in " << there->second << " and in " << file;
      }
    }
  }
  // A struct, a nested one, an enum, a template.
  for (const char* type : {"yoke::spec::Machine", "yoke::http::Server::Core", "yoke::ErrorCode", "yoke::Quantity",
                           "yoke::tensor::DTypeOf<float>"}) {
    EXPECT_TRUE(homes.contains(type)) << type << " was not seen among " << homes.size();
  }
}

TEST(Namespaces, AreFoundAsTheyAreWritten) {
  const auto blocks = namespace_blocks(
      "namespace yoke::fleet {\nclass Node;\n}\nnamespace yoke::job {\nint f() {\n}\nnamespace {\nint g;\n}  // "
      "namespace\n"
      "struct A {\n};\n}  // namespace yoke::job\n");
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[0].name, "yoke::fleet");
  EXPECT_TRUE(is_guest(blocks[0]));
  EXPECT_EQ(blocks[1].name, "yoke::job");
  EXPECT_THAT(blocks[1].lines, testing::Contains("struct A {"));
  EXPECT_FALSE(is_guest(blocks[1]));
  EXPECT_EQ(blocks[2].name, "");
  EXPECT_THAT(types_defined(
                  {"yoke::a",
                   {"struct A {", "class B final : public A,", "                public C {", "enum D {", "struct E;",
                    "template <class T>", "struct F {", "template <> struct G<int> {}", "enum class H : int { kOne };",
                    "struct [[nodiscard]] I {", "struct alignas(64) J {", "class K::L : public A {",
                    "struct stat status_of(int file) {", "enum class M : int;  // elsewhere"}}),
              testing::ElementsAre("A", "B", "D", "F", "G<int>", "H", "I", "J", "K::L"));
  EXPECT_EQ(namespace_of("yoke/comm/direct/wire.h"), "yoke::comm::direct");
  EXPECT_EQ(namespace_of("yoke/base/error.h"), "yoke");
}

}  // namespace
}  // namespace yoke::tests
