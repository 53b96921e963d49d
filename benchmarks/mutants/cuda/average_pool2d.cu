/* {
  "inputs":  {"x": ["B", "C", "H", "W"]},
  "outputs": {"y": {"shape": ["B", "C", "(H - 1) // 2 + 1", "(W - 1) // 2 + 1"], "dtype": "float32"}},
  "sizes":   {"OH": "(H - 1) // 2 + 1", "OW": "(W - 1) // 2 + 1"},
  "kernels": [{"name": "average_pool2d", "grid": ["cdiv(OW, 8)", "cdiv(OH, 4)", "B * C"],
               "block": [8, 4], "args": ["x", "y", "H", "W", "OH", "OW"]}]
} */

// Mean of a window of 3 by 3 with a stride of 2 and padding of 1, which is not counted.
extern "C" __global__ void average_pool2d(const float* __restrict__ x, float* __restrict__ y, int H,
                                          int W, int OH, int OW) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int image = blockIdx.z;
  if (row >= OH || col >= OW) return;
  float total = 0.0f;
  int count = 0;
  for (int r = max(0, row * 2 - 1); r < min(H, row * 2 + 2); ++r) {
    for (int c = max(0, col * 2 - 1); c < min(W, col * 2 + 2); ++c) {
      total += x[(image * H + r) * W + c];
      ++count;
    }
  }
  y[(image * OH + row) * OW + col] = total / count;
}
