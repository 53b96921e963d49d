"""A libcuda of a few lines in C, for processes that launch without a GPU.

Memory is the host's, a function is its name, and what is to be seen is a line of `FAKE_LOG`.
"""

import shutil
import subprocess

import pytest

NO_SYMBOLS = b"\x7fELF\x02\x01" + bytes(52) + b"\x40" + bytes(5)
"""The head of a binary whose section headers have 64 bytes, and which has none."""
COMMON = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long u64;
static void note(const char *text) {
    FILE *f = fopen(getenv("FAKE_LOG"), "a"); fprintf(f, "%s\n", text); fclose(f);
}
static unsigned char judge[8192];
int cuInit(unsigned f) { return 0; }
int cuDeviceGet(int *d, int n) { *d = n; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = judge; return 0; }
int cuCtxSetCurrent(void *c) { return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuGetErrorName(int e, const char **s) { *s = "FAKE_ERROR"; return 0; }
int cuMemFree_v2(u64 p) { return 0; }
int cuMemsetD16Async(u64 p, unsigned short v, size_t n, void *s) {
    for (size_t i = 0; i < n; i++) ((unsigned short *)p)[i] = v;
    return 0;
}
int cuMemGetAddressRange_v2(u64 *b, size_t *n, u64 p) { *b = p; *n = 64; return 0; }
int cuModuleLoadData(void **m, const void *code) { *m = judge; return 0; }
int cuFuncGetAttribute(int *v, int a, void *f) { *v = 0; return 0; }
"""


def build_driver(folder, own):
    """Compile the driver with a test's own functions; without gcc the test is skipped."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc to make a driver")
    (folder / "driver.c").write_text(COMMON + own)
    command = ["gcc", "-w", "-shared", "-fPIC", "-o", "libcuda.so.1", "driver.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder
