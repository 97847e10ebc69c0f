"""A kernel that takes as long as it is told, whatever the clock of the device: it looks at the timer that events read, too."""

from __future__ import annotations

MILLISECOND = 1_000_000  # nanoseconds

#: Each thread adds 1 to its number when so many nanoseconds have gone by.
SPIN = r"""
extern "C" __global__ void spin(float* x, long long nanoseconds) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
    x[threadIdx.x] += 1.0f;
}
"""
