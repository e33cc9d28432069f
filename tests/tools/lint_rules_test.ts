import { assertEquals } from "@std/assert";
import plugin from "../../tools/lint_rules.ts";

const lines = (count: number) => "  work();\n".repeat(count);

function report(source: string, path = "lib/a.ts"): string[] {
  return Deno.lint.runPlugin(plugin, path, source).map(({ message }) => message);
}

Deno.test("function-length refuses a function with more than 80 lines of its own", () => {
  assertEquals(report(`function a() {\n${lines(78)}}\n`), []);
  assertEquals(report(`function a() {\n${lines(79)}}\n`), ["This function has 81 lines of its own; the maximum is 80"]);
  assertEquals(report(`const a = () => {\n${lines(79)}};\n`).length, 1);
  assertEquals(report(`class A {\n  a() {\n${lines(79)}  }\n}\n`).length, 1);
});

Deno.test("function-length leaves the lines of functions within out", () => {
  const inner = `function b() {\n${lines(70)}}\n`;
  assertEquals(report(`function a() {\n${inner}${inner}}\n`), []);
  assertEquals(report(`function a() {\n${inner}${lines(78)}}\n`), [
    "This function has 81 lines of its own; the maximum is 80",
  ]);
});

Deno.test("nested-conditional refuses a ?: directly inside another one", () => {
  const message = "Use if statements or a named value instead of a nested ?:";
  assertEquals(report("const a = b ? 1 : c ? 2 : 3;"), [message]);
  assertEquals(report("const a = b ? c ? 1 : 2 : 3;"), [message]);
  assertEquals(report("const a = b ? 1 : 2, c = f(d ? g(e ? 1 : 2) : 3);"), []);
  assertEquals(report("const a = b ? 1 : c ? 2 : 3;", "/repository/tests/a_test.ts"), []);
});

Deno.test("function-length does not read tests and benchmarks", () => {
  assertEquals(report(`function a() {\n${lines(79)}}\n`, "/repository/tests/a_test.ts"), []);
  assertEquals(report(`function a() {\n${lines(79)}}\n`, "/repository/bench/a.ts"), []);
});
