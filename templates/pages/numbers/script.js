// @ts-check
/*
 * Where the memory goes: the figures of the model and the GPU that the reader chooses, which the
 * build counted (templates/pages/numbers/figures.py), take the place of the default's. The choice
 * stands in the page's address:
 *
 *     numbers/?model=NAME&gpu=NAME
 */

import { find, findAll, mountEach } from "#assets/elements.js";

/** @param {HTMLElement} form */
function mount(form) {
  const lists = [...form.querySelectorAll("select")];
  const status = find(form, "[role=status]");
  const asked = new URLSearchParams(location.search);
  let shown = lists.map((list) => list.value);
  for (const list of lists) {
    list.disabled = false;
    const value = asked.get(list.name);
    if ([...list.options].some((option) => option.value === value)) list.value = value ?? "";
    list.addEventListener("change", () => choose(true));
  }

  /** @param {boolean} isVisitors False for what the address asks for. */
  async function choose(isVisitors) {
    const chosen = lists.map((list) => list.value);
    const name = chosen.map((value) => value.split("/").pop()).join(".");
    const [model, gpu] = lists.map((list) => list.selectedOptions[0].text);
    try {
      const response = await fetch(new URL(`./numbers/${name}.json`, import.meta.url));
      if (!response.ok) throw new Error(`${name}: ${response.status}`);
      const figures = await response.json();
      if (chosen.some((value, at) => value !== lists[at].value)) return; // another was chosen since
      keepPlace(() => write(figures));
      shown = chosen;
      say(`Every figure is now for ${model} on ${gpu}.`, false);
      if (isVisitors) history.replaceState(history.state, "", `?${new URLSearchParams(lists.map((list) => [list.name, list.value]))}`);
    } catch (error) {
      console.error(error);
      for (const [at, list] of lists.entries()) list.value = shown[at];
      say(`The figures for ${model} on ${gpu} could not be loaded. Try again.`, true);
    }
  }

  /**
   * @param {string} words
   * @param {boolean} isShown Or only read aloud.
   */
  function say(words, isShown) {
    status.classList.toggle("visually-hidden", !isShown);
    status.textContent = words;
  }

  if (lists.some((list, at) => list.value !== shown[at])) choose(false);
}

/** @param {Record<string, string>} figures HTML of our own build, by the place that has it. */
function write(figures) {
  for (const place of findAll(document, "[data-figures]")) place.innerHTML = figures[place.dataset.figures ?? ""];
}

/**
 * Change what stands above the reader, and leave the section that is read where it is.
 * @type {(change: () => void) => void}
 */
function keepPlace(change) {
  const top = (/** @type {Element | undefined} */ one) => one?.getBoundingClientRect().top ?? 0;
  const here = [...document.querySelectorAll("h2[id]")].findLast((one) => top(one) < innerHeight / 2);
  const before = top(here);
  change();
  scrollBy({ top: top(here) - before, behavior: "instant" });
}

mountEach(".numbers__choice", mount);
