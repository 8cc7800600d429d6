"""Pages, each rendered once for all tests of a process."""

from functools import cache

from templates import render

render_page = cache(render.render_page)
