"""What a kernel takes when it runs for seconds: time, and energy by NVML's counter."""
import ctypes
import time


class EnergyCounter:
    """Joules that a GPU has taken since its driver was loaded. The device is that of a UUID as CUDA has it, or the
    first. Raises OSError, with the reason, where there is no NVML or it counts no energy."""

    def __init__(self, uuid=None, library="libnvidia-ml.so.1"):
        self.nvml = ctypes.CDLL(library)
        self.device = ctypes.c_void_p()
        self.ask("nvmlInit_v2")
        if uuid:
            name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
            self.ask("nvmlDeviceGetHandleByUUID", name.encode(), ctypes.byref(self.device))
        else:
            self.ask("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(self.device))
        self.read()

    def ask(self, function, *arguments):
        try:
            error = getattr(self.nvml, function)(*arguments)
        except AttributeError:
            raise OSError(f"NVML has no {function}") from None
        if error:
            raise OSError(f"{function} fails with error {error}")

    def read(self):
        millijoules = ctypes.c_ulonglong()
        self.ask("nvmlDeviceGetTotalEnergyConsumption", self.device, ctypes.byref(millijoules))
        return millijoules.value * 1e-3


def sustain(call, synchronize, seconds, energy=None, clock=time.perf_counter):
    """Calls without a pause for so many seconds, until clocks and temperature have settled: the seconds and, with a
    counter, the joules of a call in the second half of the time."""
    call()
    synchronize()
    # The counter is renewed some ten times a second, so calls are waited for a few times a second.
    chunk, period = 1, min(0.25, seconds / 8)

    def run(end):
        nonlocal chunk
        count = 0
        while True:
            start = clock()
            for _ in range(chunk):
                call()
            synchronize()
            count += chunk
            now = clock()
            if now >= end:
                return count
            chunk = max(1, min(2 * chunk, int(chunk * period / max(now - start, 1e-9))))

    start = clock()
    run(start + seconds / 2)
    start, before = clock(), energy.read() if energy else None
    count = run(start + seconds / 2)
    took = (clock() - start) / count
    return took, (energy.read() - before) / count if energy else None
