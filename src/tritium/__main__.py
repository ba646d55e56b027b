"""``python -m tritium``: the command line."""

from __future__ import annotations

from tritium.cli import main

if __name__ == "__main__":
    main()
