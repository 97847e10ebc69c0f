"""The platforms that wheels are made for, and how far each was tried. ``docs/platforms.md`` tells more of each."""

from __future__ import annotations

from weft._core import _target

__all__ = ["PLATFORMS", "platform"]

_TESTED = "every test runs at every change"
_EMULATED = "checked at every change; tests run by emulation before a release"
_NATIVE_RUST = "checked before a release; the engine's tests were run, no wheel was"
_CHECKED = "checked before a release; not run yet"

#: What is known of each target, by Rust's name of it.
PLATFORMS = {
    "x86_64-unknown-linux-gnu": _TESTED,
    "aarch64-unknown-linux-gnu": _EMULATED,
    "x86_64-unknown-linux-musl": _NATIVE_RUST,
    "aarch64-unknown-linux-musl": _CHECKED,
    "x86_64-apple-darwin": _CHECKED,
    "aarch64-apple-darwin": _CHECKED,
    "x86_64-pc-windows-msvc": _CHECKED,
    "aarch64-pc-windows-msvc": _CHECKED,
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
