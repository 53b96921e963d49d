/* {
  "inputs":  {"x": ["ROWS", "COLUMNS"]},
  "outputs": {"y": {"shape": ["ROWS", "COLUMNS"], "dtype": "float32"}},
  "kernels": [{"name": "row_softmax", "grid": ["ROWS"], "block": [256],
               "shared_bytes": "4 * COLUMNS", "args": ["x", "y", "COLUMNS"]}]
} */

// Softmax over each row: one block a row, which is read once and kept in shared memory.
//
// The comment above is the launch description: sizes are named by the shapes of the inputs, outputs
// are allocated by the verifier, and kernels get their arguments in the order given. On a machine
// without a GPU the kernel is compiled and its resources are reported, but it does not run.
//
// Run: hotloop verify examples/row_softmax.py examples/cuda/row_softmax.cu

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

// Combine one value of each thread; every thread gets the result.
template <typename Combine>
__device__ float across_block(float value, Combine combine) {
  __shared__ float of_warp[WARPS];
  for (int lane = 16; lane > 0; lane /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffff, value, lane));
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < WARPS; ++warp) value = combine(value, of_warp[warp]);
  return value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
row_softmax(const float* __restrict__ x, float* __restrict__ y, int columns) {
  extern __shared__ float row[];  // a thread reads only what it wrote itself
  const float* in = x + (long long)blockIdx.x * columns;
  float* out = y + (long long)blockIdx.x * columns;

  float largest = in[0];
  for (int i = threadIdx.x; i < columns; i += THREADS) {
    row[i] = in[i];
    largest = fmaxf(largest, row[i]);
  }
  largest = across_block(largest, [](float a, float b) { return fmaxf(a, b); });

  float total = 0.0f;
  for (int i = threadIdx.x; i < columns; i += THREADS) {
    row[i] = expf(row[i] - largest);
    total += row[i];
  }
  total = across_block(total, [](float a, float b) { return a + b; });

  for (int i = threadIdx.x; i < columns; i += THREADS) out[i] = row[i] / total;
}
