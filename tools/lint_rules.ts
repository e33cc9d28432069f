/** Rules of `deno lint` that Deno does not have. */

/** Lines of a function without those of functions within it. More than this means that it does more than one thing. */
const MAX_LINES = 80;

/** A function that is being read, and the lines of the functions within it. */
interface OpenFunction {
  node: Deno.lint.Node;
  inner: number;
}

const plugin: Deno.lint.Plugin = {
  name: "sluice",
  rules: {
    "function-length": {
      create(context) {
        // Tests and benchmarks have long tables of cases.
        if (/\/(?:tests|bench)\//.test(context.filename)) return {};
        const open: OpenFunction[] = [];
        const begin = (node: Deno.lint.Node) => void open.push({ node, inner: 0 });
        const end = (node: Deno.lint.Node) => {
          const lines = context.sourceCode.getText(node).split("\n").length;
          const own = lines - (open.pop()?.inner ?? 0);
          const outer = open.at(-1);
          // One line of it stays in the outer function, which calls or returns it.
          if (outer !== undefined) outer.inner += lines - 1;
          if (own > MAX_LINES) {
            context.report({ node, message: `This function has ${own} lines of its own; ${MAX_LINES} are the most` });
          }
        };
        return {
          FunctionDeclaration: begin,
          FunctionExpression: begin,
          ArrowFunctionExpression: begin,
          "FunctionDeclaration:exit": end,
          "FunctionExpression:exit": end,
          "ArrowFunctionExpression:exit": end,
        };
      },
    },
  },
};

export default plugin;
