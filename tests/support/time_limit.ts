/**
 * Gives each test a time limit, so that one that waits for ever fails under its name instead of holding up the run.
 * `tools/test.ts` preloads this module.
 */

/** Longest time of one test, in milliseconds. The longest tests take a minute on a busy machine. */
const LIMIT_MS = Number(Deno.env.get("SLUICE_TEST_LIMIT_MS") ?? 300_000);

const { test } = Deno;

/** Registers a test with the time limit. Takes all forms of arguments of `Deno.test`. */
function testWithLimit(...args: unknown[]): void {
  const index = args.findIndex((arg) => typeof arg === "object");
  const limited = { timeout: LIMIT_MS, ...(args[index] as Partial<Deno.TestDefinition> | undefined) };
  if (index >= 0) args[index] = limited;
  else args.splice(typeof args[0] === "string" ? 1 : 0, 0, limited);
  Reflect.apply(test, Deno, args);
}

Object.assign(Deno, { test: Object.assign(testWithLimit, test) });
