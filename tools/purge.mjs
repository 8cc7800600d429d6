// Leaves out of the theme's styles what no page of this site uses: node purge.mjs SITE READER... -- STYLE...
// The theme has styles for tags, blogs, versions, a repository's stars and much else. PurgeCSS keeps
// a selector whose words are in a page or a script, and a variable that a STYLE or a READER reads.
// @ts-check
import { writeFileSync } from "node:fs";
import { PurgeCSS } from "purgecss";

const [site, ...paths] = process.argv.slice(2);
const styles = paths.slice(paths.indexOf("--") + 1);
const found = await new PurgeCSS().purge({
  content: [`${site}/**/*.html`, `${site}/assets/**/*.{js,json}`],
  css: paths.filter((path) => path !== "--"),
  variables: true,
  // Words, and whole values of attributes, since selectors ask how an address ends.
  defaultExtractor: (text) => [...(text.match(/[\w-]+/g) ?? []), ...(text.match(/[^\s"'<>=]+/g) ?? [])],
  safelist: [/^tabbed-control/], // a script puts their names together
});
for (const { file, css } of found) if (file && styles.includes(file)) writeFileSync(file, css);
