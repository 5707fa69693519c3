# The lit suite: how tests are found and which tools their RUN lines name.
import ctypes
import os
import shutil
import subprocess

import lit.formats

config.name = "flash"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.flash_build_dir, "test")

config.environment["PATH"] = os.pathsep.join(
    [config.flash_tools_dir, config.llvm_tools_dir, config.environment["PATH"]]
)
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%cc", config.cc))
# `make python` installs the package there.
venv = os.path.join(config.flash_build_dir, "python")
config.substitutions.append(("%venv_python", os.path.join(venv, "bin", "python")))
if os.path.exists(os.path.join(venv, "installed")):
    config.available_features.add("python-package")
config.substitutions.append(("%source_dir", config.flash_source_dir))
config.substitutions.append(("%build_dir", config.flash_build_dir))
config.substitutions.append(("%examples", os.path.join(config.flash_source_dir, "examples")))


def has_gpu():
    """Whether the CUDA driver is here and sees a device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


if has_gpu():
    config.available_features.add("cuda")
if subprocess.run([config.python, "-c", "import numpy, matplotlib"], capture_output=True).returncode == 0:
    config.available_features.add("matplotlib")
if shutil.which("ptxas"):
    config.available_features.add("ptxas")
