// What the tests of codecs share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ops/error.h"
#include "pipeline/image_reader.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {

template <typename F>
std::string ErrorOf(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class CodecTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

}  // namespace tessera
