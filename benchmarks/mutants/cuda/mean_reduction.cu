/* {
  "inputs":  {"x": ["B", "R", "C"]},
  "outputs": {"y": {"shape": ["B", "R"], "dtype": "float32"}},
  "kernels": [{"name": "row_mean", "grid": ["B * R"], "block": [64], "args": ["x", "y", "C"]}]
} */

// Mean of the last dimension: shuffles within a warp, shared memory between warps.
#include <cuda_fp16.h>

constexpr int THREADS = 64;

extern "C" __global__ void row_mean(const float* __restrict__ x, float* __restrict__ y, int columns) {
  __shared__ float of_warp[THREADS / 32];
  int row = blockIdx.x;
  float total = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) total += x[row * columns + i];
  for (int lane = 16; lane > 0; lane /= 2) total += __shfl_down_sync(0xffffffff, total, lane);
  int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) of_warp[warp] = total;
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int k = 0; k < THREADS / 32; ++k) sum += of_warp[k];
    y[row] = sum / columns;
  }
}
