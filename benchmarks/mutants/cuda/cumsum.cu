/* {
  "inputs":  {"x": ["ROWS", "COLUMNS"]},
  "outputs": {"y": {"shape": ["ROWS", "COLUMNS"], "dtype": "float32"}},
  "kernels": [{"name": "row_cumsum", "grid": ["ROWS"], "block": [64], "args": ["x", "y", "COLUMNS"]}]
} */

// Running sum along rows: a scan of 64 elements at a time, with what came before carried on.
#include <cuda_fp16.h>

constexpr int THREADS = 64;

extern "C" __global__ void row_cumsum(const float* __restrict__ x, float* __restrict__ y,
                                      int columns) {
  __shared__ float sums[THREADS];
  int lane = threadIdx.x;
  const float* in = x + blockIdx.x * columns;
  float* out = y + blockIdx.x * columns;
  float carried = 0.0f;
  for (int start = 0; start < columns; start += THREADS) {
    int i = start + lane;
    sums[lane] = i < columns ? in[i] : 0.0f;
    __syncthreads();
    for (int offset = 1; offset < THREADS; offset *= 2) {
      float before = lane >= offset ? sums[lane - offset] : 0.0f;
      __syncthreads();
      sums[lane] += before;
      __syncthreads();
    }
    if (i < columns) out[i] = carried + sums[lane];
    carried += sums[THREADS - 1];
    __syncthreads();
  }
}
