// @ts-check
/*
 * Tables that can be sorted by their columns: each has a button in each heading, and above it a list
 * for narrow screens, where rows are blocks without headings; here they begin to work. A list of
 * cards, of which the last columns are, leaves the column of one: on a phone that of its `data-phone`,
 * as sort.css does before this runs.
 * What sorts is a cell's `data-value`.
 */

import { mountEach } from "#assets/elements.js";

/** @param {HTMLTableElement} table */
function mount(table) {
  const headings = [...table.tHead?.rows[0].cells ?? []];
  const body = table.tBodies[0];
  const sorter = table.closest("[data-sorted]")?.querySelector(".sorter");
  const list = sorter?.querySelector("select");
  const turn = sorter?.querySelector("button");
  const mine = table.closest(".switched")?.querySelector("select");
  let by = 0;
  let isRising = true;

  /** @type {(column: number, rising: boolean) => void} */
  function sort(column, rising) {
    by = column;
    isRising = rising;
    const sign = rising ? 1 : -1;
    const rows = [...body.rows].sort((one, other) => sign * (valueOf(one, column) - valueOf(other, column)));
    body.append(...rows);
    for (const [place, heading] of headings.entries()) {
      if (place === column) heading.ariaSort = rising ? "ascending" : "descending";
      else heading.removeAttribute("aria-sort");
    }
    if (list) list.value = String(column);
  }

  function showMine() {
    if (!mine) return;
    const first = headings.length - mine.options.length + 1;
    const own = first + mine.selectedIndex - 1;
    for (const row of table.rows) {
      for (const cell of [...row.cells].slice(first)) cell.hidden = own >= first && cell.cellIndex !== own;
    }
    sort(0, true); // models that are alike on the card stay in this order
    if (own >= first) sort(own, true);
  }

  for (const [column, heading] of headings.entries()) {
    const button = heading.querySelector("button");
    if (!button) continue;
    button.disabled = false;
    button.addEventListener("click", () => sort(column, column === by ? !isRising : true));
  }
  list?.addEventListener("input", () => sort(Number(list.value), true));
  turn?.addEventListener("click", () => sort(by, !isRising));
  if (list) list.disabled = false;
  if (turn) turn.disabled = false;
  if (!mine) return;
  mine.disabled = false;
  mine.addEventListener("input", showMine);
  const usual = matchMedia("(max-width: 36em)").matches ? mine.dataset.phone : undefined;
  const asked = new URLSearchParams(location.search).get("card") ?? usual;
  if (asked && [...mine.options].some((option) => option.value === asked)) mine.value = asked;
  if (mine.value) showMine();
}

/** @type {(row: HTMLTableRowElement, column: number) => number} */
const valueOf = (row, column) => Number(row.cells[column].dataset.value);

mountEach("table.sortable", mount);
