"""What a program says of its memory, and what the process takes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunScript


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is reset by a file of Linux")
def test_the_peak_of_the_process_is_that_of_the_plan(script: RunScript) -> None:
    done = script(
        """
        import weft

        def pages(name):
            with open("/proc/self/status") as status:
                (line,) = (line for line in status if line.startswith(name))
            return int(line.split()[1]) * 1024

        @weft.program
        def smooth(x):
            for _ in range(6):  # no products: their library has memory of its own
                x = weft.tanh(x + x[::-1]) * 0.5
            return x

        x = weft.ones((2400, 2400))
        x.wait_to_read()
        smooth(weft.ones((300, 300))).wait_to_read()
        weft.wait_all()
        weft.memory_trim()
        program = smooth.lower(x)
        before, known = pages("VmRSS"), weft.memory_stats()["allocated"]
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")  # the peak counts from here on
        result = smooth(x)
        result.wait_to_read()
        weft.wait_all()
        grown = pages("VmHWM") - before
        planned = program.nbytes + result.nbytes
        assert planned < program.eager_nbytes / 4, (planned, program.eager_nbytes)
        assert 0.9 * planned <= weft.memory_stats()["allocated"] - known <= 1.05 * planned
        # Huge pages round up.
        assert 0.8 * planned <= grown <= 1.15 * planned, (grown, planned, program.eager_nbytes)
        print("as planned")
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "as planned"
