/* {
  "inputs":  {"x": ["B", "C", "L"]},
  "outputs": {"y": {"shape": ["B", "C", "(L - 3) // 2 + 1"], "dtype": "float32"}},
  "sizes":   {"OUT": "(L - 3) // 2 + 1", "N": "B * C * OUT"},
  "kernels": [{"name": "max_pool1d", "grid": ["cdiv(N, 64)"], "block": [64],
               "args": ["x", "y", "L", "OUT", "N"]}]
} */

// Maximum of a window of 3 with a stride of 2, padding of 1 and dilation of 2.
extern "C" __global__ void max_pool1d(const float* __restrict__ x, float* __restrict__ y, int L,
                                      int OUT, int n) {
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n; at += gridDim.x * blockDim.x) {
    int row = at / OUT;
    int first = at % OUT * 2 - 1;
    float largest = -INFINITY;
    for (int k = 0; k < 3; ++k) {
      int i = first + k * 2;
      if (i >= 0 && i < L) largest = fmaxf(largest, x[row * L + i]);
    }
    y[at] = largest;
  }
}
