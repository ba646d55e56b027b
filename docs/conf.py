# Sphinx configuration; built by ./dev docs with warnings as errors.
from __future__ import annotations

import importlib.metadata

project = "Tritium"
author = "the Tritium authors"
project_copyright = "the Tritium authors"
release = importlib.metadata.version("tritium")

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = f"Tritium {release}"
