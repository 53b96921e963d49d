"""Logs as compute-sanitizer writes them, of several versions, for kernels `add` and `sum`."""

CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
CLEAN_RACES = (
    "========= COMPUTE-SANITIZER\n"
    "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
)

OUT_OF_BOUNDS_NEW = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at add+0xec0 in /tmp/hotloop-x1/00003-run/kernel.cu:43
=========     by thread (18,0,0) in block (0,0,0)
=========     Access to 0x74505bcccca0 is out of bounds
=========     and is 161 bytes after the nearest allocation at 0x74505bccc800 of size 1,024 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: sum [0x9544e] in libcuda.so.1
=========
========= Invalid __global__ read of size 4 bytes
=========     at add+0xec0 in /tmp/hotloop-x1/00003-run/kernel.cu:43
=========     by thread (19,0,0) in block (0,0,0)
=========     Access to 0x74505bcccca4 is out of bounds
=========
========= ERROR SUMMARY: 2 errors
"""
OUT_OF_BOUNDS_OLD = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 16 bytes
=========     at 0xda0 in /opt/dlami/kernels/fused.py:175:add
=========     by thread (96,0,0) in block (44,0,0)
=========     Address 0x763995f9f000 is out of bounds
=========     and is 1,241,911,296 bytes before the nearest allocation at 0x7639e0000000
=========     Saved host backtrace up to driver entry point at kernel launch time
=========     Host Frame: [0x2f26f0]
=========                in /usr/lib/x86_64-linux-gnu/libcuda.so.1
=========
========= ERROR SUMMARY: 1 error
"""
NO_SOURCE = """\
========= COMPUTE-SANITIZER
========= Invalid __shared__ write of size 4 bytes
=========     at 0x3b0 in add(float const*, float*, int)
=========     by thread (251,0,0) in block (0,0,0)
=========     Address 0x400 is out of bounds
========= ERROR SUMMARY: 1 error
"""
MISALIGNED = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 16 bytes
=========     at add+0x90 in kernel.cu:7
=========     by thread (1,0,0) in block (0,0,0)
=========     Address 0x763995f9f004 is misaligned
========= ERROR SUMMARY: 1 error
"""
IN_A_HELPER = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ atomic of size 4 bytes
=========     at gather(const float *, int)+0x40 in /tmp/run/kernel.cu:9
=========     by thread (3,0,0) in block (1,0,0)
=========     Address 0x7f3bf5200420 is out of bounds
=========         Device Frame: sum+0x2b0 in kernel.cu:21
========= ERROR SUMMARY: 1 error
"""
UNINITIALISED = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at sum+0x150 in /tmp/run/kernel.cu:31
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x7fc406200400 on access by kernel
========= ERROR SUMMARY: 1 error
"""
RACE_NEW = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sum+0xd790 in /tmp/run/kernel.cu:324
=========     and Read access at sum+0xd5c0 in /tmp/run/kernel.cu:312 [16 hazards]
=========     and Read access at sum+0xd5e0 in /tmp/run/kernel.cu:312 [32 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
RACE_OLD = """\
========= COMPUTE-SANITIZER
========= ERROR: Race reported between Read access at 0x6360 in /home/n/demo/c.cu:123:sum(int*)
=========     and Write access at 0x1fe0 in /home/n/demo/c.cu:63:sum(int*) [1088 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
RACE_HAZARD = """\
========= COMPUTE-SANITIZER
========= Error: Potential WAW hazard detected at __shared__ 0x404 in block (0,0,0) :
=========     Write Thread (23,0,0) at sum+0x1a0 in kernel.cu:32
=========     Write Thread (24,0,0) at sum+0x1a0 in kernel.cu:32
=========     Current Value : 2, Incoming Value : 3
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
RACE_WARNING = """\
========= COMPUTE-SANITIZER
========= Warning: Race reported between Read access at sum+0x1f20 in kernel.cu:249
=========     and Write access at sum+0x14b0 in kernel.cu:349 [4 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""
BARRIER = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block
=========     at sum+0x46b8 in kernel.cu:12
=========     by thread (2,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""
BARRIER_OLD = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in warp
=========     at 0x000046b8 in /home/m/kernel.cu:12:sum
=========     by thread (2,0,0) in block (0,0,0)
=========     Device Frame:/home/m/kernel.cu:12:sum (sum : 0x46c0)
========= ERROR SUMMARY: 1 error
"""
UNSIZED_SHARED = """\
========= COMPUTE-SANITIZER
========= Invalid __shared__ ? of size 2048 bytes
=========     at 0x2570 in /root/code/03-matrix-multiplication.py:223:add
=========     by thread (224,0,0) in block (4,0,0)
=========     Address 0x1bc20 is out of bounds
========= ERROR SUMMARY: 1 error
"""
HOST_COPY = """\
========= COMPUTE-SANITIZER
========= Host API memory access error at host access to 0x7f7fcdc01200 of size 400 bytes
=========     Uninitialized access at 0x7f7fcdc01300 on access by cudaMemcpy source
=========     Saved host backtrace up to driver entry point at error
=========     Host Frame: add [0x1fe264]
========= ERROR SUMMARY: 1 error
"""
FOREIGN = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at void at::native::vectorized_elementwise_kernel<4>(int)+0x90
=========     by thread (3,0,0) in block (1,0,0)
=========     Access to 0x7f3bf5200420 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: add [0x9544e] in libtorch_cuda.so
========= ERROR SUMMARY: 1 error
"""
NOT_STARTED = """\
========= COMPUTE-SANITIZER
========= Error: Target application terminated before first instrumented API call
========= Target application returned an error
"""
