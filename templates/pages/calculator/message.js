// @ts-check
/* An out-of-memory message that the visitor pastes: what Python reads in it beside the plan. */

/** @typedef {{label: string, text: string}} Row */
/** @typedef {{title: string, words: string, remedy: string, advice: boolean, query: string | null}} Finding */
/** @typedef {{rows: Row[], plan: Row, findings: Finding[]}} Explained */

/**
 * @param {HTMLDetailsElement} place
 * @param {(message: string, show: (answer: import("#assets/python.js").Answer) => void) => void} ask Asks Python about a message beside the present state.
 * @param {(query: string) => void} follow Goes to a state.
 */
export function mountMessage(place, ask, follow) {
  /** @param {string} selector */
  const find = (selector) => /** @type {HTMLElement} */ (place.querySelector(selector));
  const text = /** @type {HTMLTextAreaElement} */ (find("textarea"));
  const answer = find(".message__answer");

  function request() {
    const message = text.value.trim();
    if (!message) return show(undefined);
    place.setAttribute("aria-busy", "true");
    ask(message, (given) => {
      if (message !== text.value.trim()) return;
      place.removeAttribute("aria-busy");
      if (given.kind === "error") refuse(given.error.rule ?? given.error.message);
      else show(given.value);
    });
  }

  /** @param {string} rule */
  function refuse(rule) {
    show(undefined);
    text.setAttribute("aria-invalid", "true");
    find("#message-error").textContent = `This message ${rule}.`;
    find("#message-error").hidden = false;
  }

  /** @param {Explained | undefined} explained */
  function show(explained) {
    text.removeAttribute("aria-invalid");
    find("#message-error").hidden = true;
    answer.hidden = !explained;
    if (!explained) return;
    find(".message__rows").replaceChildren(...[...explained.rows, explained.plan].map(rowOf));
    find(".message__findings").replaceChildren(...explained.findings.map(findingOf));
  }

  /** @param {Finding} finding */
  function findingOf(finding) {
    const template = /** @type {HTMLTemplateElement} */ (find("#message-finding"));
    const row = /** @type {HTMLElement} */ (/** @type {Element} */ (template.content.firstElementChild).cloneNode(true));
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll("[data-part]"))) {
      part.textContent = finding[/** @type {"title" | "words" | "remedy"} */ (part.dataset.part)];
    }
    const { query } = finding;
    if (finding.advice) {
      const link = become(row, "a");
      link.setAttribute("href", "#advice");
      link.addEventListener("click", showAdvice);
    }
    if (query !== null) {
      const button = become(row, "button");
      button.className = "button button--small";
      button.addEventListener("click", () => follow(query));
    }
    return row;
  }

  text.addEventListener("input", request);
  return { request };
}

/**
 * Go to the advice: below the part that stays in sight, where a jump to its heading would hide it.
 * @type {(event: Event) => void}
 */
function showAdvice(event) {
  event.preventDefault();
  const heading = /** @type {HTMLElement} */ (document.querySelector("#advice"));
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  heading.scrollIntoView({ block: "center" });
}

/**
 * Turn what there is to do into something to press.
 * @type {(row: HTMLElement, tag: "a" | "button") => HTMLAnchorElement | HTMLButtonElement}
 */
function become(row, tag) {
  const words = /** @type {HTMLElement} */ (row.querySelector("[data-part='remedy']"));
  const element = document.createElement(tag);
  if (element instanceof HTMLButtonElement) element.type = "button";
  element.textContent = words.textContent;
  words.replaceWith(element);
  return element;
}

/** @param {Row} row */
function rowOf({ label, text }) {
  const row = document.createElement("div");
  for (const [tag, words] of [["dt", label], ["dd", text]]) {
    const element = document.createElement(tag);
    element.textContent = words;
    row.append(element);
  }
  return row;
}
