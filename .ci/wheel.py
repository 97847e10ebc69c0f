"""Build the wheel without build paths in it, and check what was built.

``wheel.py build`` leaves one wheel in ``dist``, by the profile that it is told (``--release``, ``--profile=NAME``); ``wheel.py check`` audits it, and
``wheel.py unwinders WHEEL`` looks at one thing alone, in any wheel. The first two must agree on what counts as a build path. ``wheel.py like COMMAND``
runs a command of cargo's on what ``build`` has compiled.
"""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"


def build_paths() -> dict[str, str]:
    """Map each directory that a compiler could write into the binary to what it shall write instead."""
    home = Path.home()
    cargo = Path(os.environ.get("CARGO_HOME", home / ".cargo"))
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()
    # rustc lets the last match win: from the general to the particular.
    return {
        str(home): "home",
        str(cargo): "cargo",
        str(cargo / "registry" / "src"): "crates.io",
        sysroot: "rust",
        str(ROOT): "weft",
    }


def environment() -> dict[str, str]:
    """Return the variables for cargo: flags, and a folder of their own, as flags are a part of its fingerprints."""
    flags = [f"--remap-path-prefix={path}={name}" for path, name in build_paths().items()]
    # The encoded form survives spaces in paths; it hides RUSTFLAGS, whose content therefore comes along.
    flags = [*os.environ.get("RUSTFLAGS", "").split(), *flags]
    return {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags), "CARGO_TARGET_DIR": str(ROOT / "target" / "wheel")}


def build(arguments: list[str]) -> None:
    """Build a wheel into ``dist``, which holds no other wheel afterwards."""
    for old in DIST.glob("weft-*.whl"):
        old.unlink()
    command = [sys.executable, "-m", "maturin", "build", "--interpreter", sys.executable]
    subprocess.run([*command, "--out", str(DIST), *arguments], check=True, cwd=ROOT, env=os.environ | environment())


def like(command: list[str]) -> None:
    """Run a command as the wheel is built, and end with its status."""
    sys.exit(subprocess.run(command, check=False, env=os.environ | environment()).returncode)


def leaks(wheel: Path) -> list[str]:
    """Name the build paths found in the files of ``wheel``."""
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    return [
        f"{name} holds the build path {path}"
        for name, content in contents.items()
        for path in build_paths()
        if (path.rstrip(os.sep) + os.sep).encode() in content and path != os.sep
    ]


def audit_platform(wheel: Path) -> list[str]:
    """Check on Linux that the platform tag promises no more than auditwheel finds."""
    if sys.platform != "linux":
        return []
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(shown.strip())
    tag = wheel.stem.rsplit("-", 1)[1]
    confirmed = tag.startswith(("manylinux", "musllinux")) and f'"{tag}"' in shown
    return [] if confirmed else [f"auditwheel does not confirm the tag {tag}"]


def unwinders(wheel: Path) -> list[str]:
    """Name the extension modules for glibc that bring an unwinder of their own.

    Up to CPython 3.13 a thread that asks for the GIL after the interpreter's end is ended by glibc's ``pthread_exit``, which
    unwinds its stack by ``libgcc_s``. Where a module was linked with another unwinder, as zig links LLVM's, the two meet and the
    process crashes.
    """
    if "-manylinux" not in wheel.name and "-linux_" not in wheel.name:
        return []
    with zipfile.ZipFile(wheel) as archive:
        modules = {name: archive.read(name) for name in archive.namelist() if name.endswith(".so")}
    # The name of a needed library is a string of the module's dynamic section, which is never compressed.
    return [
        f"{name} does not need libgcc_s.so.1: link it by gcc, not by zig"
        for name, content in modules.items()
        if b"\0libgcc_s.so.1\0" not in content
    ]


def missing(wheel: Path) -> list[str]:
    """Name what every wheel has to carry and this one does not."""
    with zipfile.ZipFile(wheel) as archive:
        members = archive.namelist()
    needed = ("weft/py.typed", "weft/_core.pyi", "/licenses/LICENSE")
    return [f"{name} is missing" for name in needed if not any(member.endswith(name) for member in members)]


def check() -> None:
    """Audit the wheel in ``dist``: ABI, platform, metadata, content."""
    (wheel,) = DIST.glob("weft-*.whl")
    if "-abi3-" in wheel.name:
        abi3audit = Path(sysconfig.get_path("scripts")) / "abi3audit"
        subprocess.run([abi3audit, "--strict", "--summary", str(wheel)], check=True)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(wheel)], check=True)
    if problems := [*leaks(wheel), *audit_platform(wheel), *unwinders(wheel), *missing(wheel)]:
        sys.exit("\n".join(problems))
    print(f"{wheel.name}: {wheel.stat().st_size / 1024:.0f} KiB, no build path, audits passed")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["build", *arguments]:
            build(arguments)
        case ["like", *command] if command:
            like(command)
        case ["check"]:
            check()
        case ["unwinders", wheel]:
            sys.exit("\n".join(unwinders(Path(wheel))) or 0)
        case _:
            sys.exit("usage: wheel.py build [maturin option ...] | like COMMAND ... | check | unwinders WHEEL")
