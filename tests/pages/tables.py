"""The tables of a page as rows of cells."""

import re

_ROW = re.compile(r"<tr\b[^>]*>(.*?)</tr>", re.DOTALL)
_CELL = re.compile(r"<t[hd]\b[^>]*>(?:<span>)?(.*?)(?:</span>)?</t[hd]>", re.DOTALL)


def rows_of(page: str) -> list[list[str]]:
    """The HTML of the cells of each row of all tables, headings included."""
    return [_CELL.findall(row) for row in _ROW.findall(page)]


def cells_of(page: str) -> set[str]:
    return {cell for row in rows_of(page) for cell in row}
