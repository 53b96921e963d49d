/* {
  "inputs":  {"a": ["M", "K"], "b": ["K", "N"]},
  "outputs": {"c": {"shape": ["M", "N"], "dtype": "float32"}},
  "kernels": [{"name": "matmul", "grid": ["(N + 15) // 16", "(M + 15) // 16"], "block": [16, 16],
               "args": ["a", "b", "c", "M", "N", "K"]}]
} */

// C = A @ B, a tile of 16 x 16 a block; tiles of A and B go through shared memory.
constexpr int TILE = 16;

extern "C" __global__ void matmul(const float* __restrict__ a, const float* __restrict__ b,
                                  float* __restrict__ c, int M, int N, int K) {
  __shared__ float tile_a[TILE][TILE];
  __shared__ float tile_b[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y;
  int col = blockIdx.x * TILE + threadIdx.x;
  float total = 0.0f;
  for (int start = 0; start < K; start += TILE) {
    int ka = start + threadIdx.x;
    int kb = start + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = row < M && ka < K ? a[row * K + ka] : 0.0f;
    tile_b[threadIdx.y][threadIdx.x] = kb < K && col < N ? b[kb * N + col] : 0.0f;
    __syncthreads();
    for (int k = 0; k < TILE; ++k) {
      total += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    }
    __syncthreads();
  }
  if (row < M && col < N) c[row * N + col] = total;
}
