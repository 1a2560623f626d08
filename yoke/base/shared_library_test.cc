#include "yoke/base/shared_library.h"

#include <gtest/gtest.h>

#include <cmath>

#include "yoke/base/error_testing.h"

namespace yoke {
namespace {

TEST(SharedLibrary, TakesTheFirstNameThatIsThere) {
  const auto library = SharedLibrary::open({.what = "arithmetic", .names = {"libnowhere.so.7", "libm.so.6"}});
  ASSERT_TRUE(library) << library.error().message();
  double (*cosine)(double) = nullptr;
  library->bind("cos", cosine);
  EXPECT_EQ(cosine(0), 1);
}

TEST(SharedLibrary, ReportsWhatItTriedAndWhatToDo) {
  const auto library = SharedLibrary::open(
      {.what = "the library of dreams", .names = {"libnowhere.so.7", "libno.so"}, .missing_hint = "sleep"});
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(library.error().message().starts_with("the library of dreams cannot be loaded: libnowhere.so.7: "))
      << library.error().message();
  EXPECT_NE(library.error().message().find("; libno.so: "), std::string::npos) << library.error().message();
  EXPECT_EQ(library.error().hint(), "sleep");
}

TEST(SharedLibrary, NamesAFunctionThatItLacks) {
  auto library = value_or_throw(
      SharedLibrary::open({.what = "arithmetic", .names = {"libm.so.6"}, .old_hint = "install a newer one"}));
  EXPECT_EQ(library.find("no_such_function"), nullptr);
  EXPECT_ERROR(library.need("no_such_function"), ErrorCode::kUnsupported, "arithmetic has no no_such_function",
               "install a newer one");
  library.close();
}

}  // namespace
}  // namespace yoke
