// @ts-check
/* What the theme's own scripts leave undone for screen readers. */

/** The theme wraps the button of each code block into a `nav`: a landmark for a button. */
function demote() {
  for (const place of document.querySelectorAll("nav.md-code__nav:not([role])")) place.setAttribute("role", "none");
}

/** The buttons come after the page. */
function watchCode() {
  const watch = new MutationObserver(demote);
  for (const block of document.querySelectorAll("pre")) {
    watch.observe(block.parentElement ?? block, { childList: true, subtree: true });
  }
  demote();
}

// Material's instant navigation replaces the content and emits each new document.
const documents = /** @type {any} */ (globalThis).document$;
if (documents) documents.subscribe(watchCode);
else watchCode();
