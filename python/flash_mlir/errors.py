"""The exceptions of this package."""


class Error(RuntimeError):
    """What all exceptions of this package's own are."""


class CompileError(Error):
    """A program does not compile. The text has the compiler's diagnostics."""


class DeviceError(Error):
    """There is no NVIDIA driver or GPU, or not one that a kernel is for."""


class TraceError(Error, TypeError):
    """A mask or score function does what cannot be traced."""


class UnpreparedError(Error):
    """A call would compile where `flash_mlir.serving.no_compilation` forbids it."""
