/* {
  "inputs":  {"x": ["M", "N"]},
  "outputs": {"y": {"shape": ["N", "M"], "dtype": "float32"}},
  "kernels": [{"name": "transpose", "grid": ["cdiv(N, 16)", "cdiv(M, 16)"], "block": [16, 8],
               "args": ["x", "y", "M", "N"]}]
} */

// Transposition through a tile in shared memory, padded so that columns lie in different banks.
constexpr int TILE = 16;
constexpr int STEP = 8;

extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ y, int m,
                                     int n) {
  __shared__ float tile[TILE][TILE + 1];
  int col = blockIdx.x * TILE + threadIdx.x;
  for (int k = threadIdx.y; k < TILE; k += STEP) {
    int row = blockIdx.y * TILE + k;
    if (row < m && col < n) tile[k][threadIdx.x] = x[row * n + col];
  }
  __syncthreads();
  int out_col = blockIdx.y * TILE + threadIdx.x;
  for (int k = threadIdx.y; k < TILE; k += STEP) {
    int out_row = blockIdx.x * TILE + k;
    if (out_row < n && out_col < m) y[out_row * m + out_col] = tile[threadIdx.x][k];
  }
}
