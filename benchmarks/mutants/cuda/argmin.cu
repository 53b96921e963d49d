/* {
  "inputs":  {"x": ["ROWS", "COLUMNS"]},
  "outputs": {"y": {"shape": ["ROWS"], "dtype": "int64"}},
  "kernels": [{"name": "row_argmin", "grid": ["ROWS"], "block": [64], "args": ["x", "y", "COLUMNS"]}]
} */

// First index of each row's minimum: a tree over pairs in shared memory.
constexpr int THREADS = 64;

extern "C" __global__ void row_argmin(const float* __restrict__ x, long long* __restrict__ y,
                                      int columns) {
  __shared__ float values[THREADS];
  __shared__ int places[THREADS];
  const float* row = x + blockIdx.x * columns;
  float least = INFINITY;
  int place = columns;
  for (int i = threadIdx.x; i < columns; i += THREADS) {
    if (row[i] < least) {
      least = row[i];
      place = i;
    }
  }
  values[threadIdx.x] = least;
  places[threadIdx.x] = place;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      float other = values[threadIdx.x + half];
      int at = places[threadIdx.x + half];
      bool is_first = other == values[threadIdx.x] && at < places[threadIdx.x];
      if (other < values[threadIdx.x] || is_first) {
        values[threadIdx.x] = other;
        places[threadIdx.x] = at;
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = places[0];
}
