#include "engine/cuda/api/cudnn.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/cuda/cudnn/fake_cudnn.h"

namespace paceline::engine::cuda::cudnn {
namespace {

TEST(CudnnApi, ALibraryWithoutAFunctionIsRefusedByName) {
  const base::SharedLibrary library{.handle = ::dlopen("libm.so.6", RTLD_NOW), .path = "/lib/libcudnn.so.9"};
  ASSERT_NE(library.handle, nullptr);
  try {
    static_cast<void>(cudnn_api(library));
    ADD_FAILURE() << "it was accepted";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
    EXPECT_STREQ(error.what(),
                 "cuDNN: /lib/libcudnn.so.9 has no function cudnnGetVersion; install another cuDNN 9");
  }
}

TEST(CudnnApi, ErrorsAreOneLineOfNameNumberAndDetails) {
  const test::FakeCudnn fake;
  EXPECT_EQ(cudnn_version(fake.api()), "9.19.0");
  EXPECT_EQ(error_text(fake.api(), 5000), "CUDNN_STATUS_EXECUTION_FAILED (5000): the fake was told to fail");
  EXPECT_NO_THROW(check(fake.api(), kSuccess, "cudnnCreate", "the current device"));
}

}  // namespace
}  // namespace paceline::engine::cuda::cudnn
