// @ts-check
// What `build.py check` asks of our scripts; types are checked by tsc.
import js from "@eslint/js";
import globals from "globals";

const ours = { ecmaVersion: 2023, sourceType: "module" };

export default [
  { ignores: [".build/", ".venv/", "bench/", "site/"] },
  js.configs.recommended,
  {
    files: ["docs/assets/**/*.js", "templates/pages/**/*.js"],
    ignores: ["docs/assets/worker.js", "docs/assets/worker/*.js", "docs/assets/drawing-worker.js", "docs/assets/tab-*.js", "docs/assets/service-worker.js"],
    languageOptions: { ...ours, globals: globals.browser },
  },
  {
    files: ["docs/assets/worker.js", "docs/assets/worker/*.js", "docs/assets/drawing-worker.js", "docs/assets/tab-*.js", "benchmarks/pages/*.js"],
    languageOptions: { ...ours, globals: globals.worker },
  },
  { files: ["docs/assets/service-worker.js"], languageOptions: { ...ours, globals: globals.serviceworker } },
  { files: ["**/*.mjs"], languageOptions: { ...ours, globals: globals.node } },
  {
    rules: {
      "array-callback-return": "error",
      eqeqeq: "error",
      "no-constructor-return": "error",
      "no-console": ["error", { allow: ["warn", "error"] }],
      "no-else-return": "error",
      "no-eval": "error",
      "no-implicit-coercion": "error",
      "no-new-func": "error",
      "no-promise-executor-return": "error",
      "no-shadow": "error",
      "no-template-curly-in-string": "error",
      "no-throw-literal": "error",
      "no-unmodified-loop-condition": "error",
      "no-unneeded-ternary": "error",
      "no-unused-vars": "off", // tsc finds them, and knows those that only a type names
      "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
    },
  },
];
