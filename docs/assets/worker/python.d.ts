/** A Python program, as esbuild hands it over: its text. */
declare module "*.py" {
  const text: string;
  export default text;
}
