"""The platforms that are checked, and how far each was tried. ``docs/platforms.md`` tells more of each."""

from __future__ import annotations

from weft._core import _target

__all__ = ["PLATFORMS", "platform"]

_TESTED = "every test runs at every change"
_EMULATED = "checked at every change; tests run by emulation before a release"
_NATIVE_RUST = "checked before a release; Rust tests run natively; no wheel was tried yet: the wheels workflow does"
_EMULATED_RUST = (
    "checked before a release; Rust tests run by emulation; no wheel was tried yet: the wheels workflow does"
)
_MINGW = "checked before a release; not run yet: the workflows do; the row of MinGW stands for it"
_WINE = "checked before a release; Rust tests run by wine; no wheel is made"
_APPLE = "checked before a release; not run yet: the workflows do, on Apple's machines"
_WINDOWS_ARM = "checked before a release; not run yet: the workflows do"

#: The state of each target, by Rust's name of it.
PLATFORMS = {
    "x86_64-unknown-linux-gnu": _TESTED,
    "aarch64-unknown-linux-gnu": _EMULATED,
    "x86_64-unknown-linux-musl": _NATIVE_RUST,
    "aarch64-unknown-linux-musl": _EMULATED_RUST,
    "x86_64-apple-darwin": _APPLE,
    "aarch64-apple-darwin": _APPLE,
    "x86_64-pc-windows-msvc": _MINGW,
    "aarch64-pc-windows-msvc": _WINDOWS_ARM,
    "x86_64-pc-windows-gnu": _WINE,
}


def platform() -> str:
    """Return the target that this extension module was built for, and how far it was tried.

    Examples
    --------
    >>> from weft._core import _target
    >>> from weft._machine.platforms import platform
    >>> platform().startswith(_target)
    True
    """
    return f"{_target}: {PLATFORMS.get(_target, 'nobody has tried it')}"
