/** Our own rules for `deno lint`. */
import { exactAmounts } from "./amounts.ts";

/**
 * Maximum number of lines of a function, without those of functions within it: a longer one does more than one thing.
 */
const MAX_LINES = 80;

/** A function that the linter is inside of. */
interface OpenFunction {
  node: Deno.lint.Node;
  /** Lines of the functions within it. */
  innerLines: number;
}

const plugin: Deno.lint.Plugin = {
  name: "sluice",
  rules: {
    "exact-amounts": exactAmounts,
    "nested-conditional": {
      create(context) {
        // Tests and benchmarks have tables of cases with short choices.
        if (/\/(?:tests|bench)\//.test(context.filename)) return {};
        return {
          ConditionalExpression(node) {
            if (node.parent.type !== "ConditionalExpression") return;
            context.report({ node, message: "Use if statements or a named value instead of a nested ?:" });
          },
        };
      },
    },
    "function-length": {
      create(context) {
        // Tests and benchmarks have long tables of cases.
        if (/\/(?:tests|bench)\//.test(context.filename)) return {};
        const open: OpenFunction[] = [];
        const begin = (node: Deno.lint.Node) => void open.push({ node, innerLines: 0 });
        const end = (node: Deno.lint.Node) => {
          const lines = context.sourceCode.getText(node).split("\n").length;
          const ownLines = lines - (open.pop()?.innerLines ?? 0);
          const outer = open.at(-1);
          // Its first line also counts for the outer function, which calls or returns it.
          if (outer !== undefined) outer.innerLines += lines - 1;
          if (ownLines > MAX_LINES) {
            context.report({
              node,
              message: `This function has ${ownLines} lines of its own; the maximum is ${MAX_LINES}`,
            });
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
