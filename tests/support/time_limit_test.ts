import { assertEquals, assertMatch } from "@std/assert";

const FILE = `
Deno.test("waits", () => new Promise(() => {}));
Deno.test({ name: "waits with options", fn: () => new Promise(() => {}) });
Deno.test("has more time", { timeout: 60_000 }, () => new Promise((resolve) => setTimeout(resolve, 400)));
Deno.test(function passes() {});
`;

Deno.test("a test that waits for ever fails under its name, and the others run", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/waits_test.ts`;
    await Deno.writeTextFile(path, FILE);
    const preloaded = new URL("./time_limit.ts", import.meta.url).pathname;
    const { code, stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["test", "--no-check", "--allow-env", "--preload", preloaded, path],
      env: { SLUICE_TEST_LIMIT_MS: "300", NO_COLOR: "1" },
      stderr: "null",
    }).output();
    const output = new TextDecoder().decode(stdout);
    assertMatch(output, /FAILURES\s+waits =>.*\s+waits with options =>.*\s+FAILED \| 2 passed \| 2 failed/, output);
    assertEquals(code, 1);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
