import { assert, assertEquals, assertMatch } from "@std/assert";
import { skipInQuick } from "../support/skip.ts";
import { readSources } from "../../tools/sources.ts";
import { ALONE, groupsOf, LEFT_OUT, readCounts, runDenoTest } from "../../tools/test.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

Deno.test("readCounts() reads the last line of a run", () => {
  const cases: [string, ReturnType<typeof readCounts>][] = [
    ["ok | 7 passed | 0 failed (23ms)\n\n", { passed: 7, failed: 0 }],
    ["\x1b[0m\x1b[32mok\x1b[0m | 94 passed (33 steps) | 0 failed | 1 ignored (2 steps) (1m2s)\n", {
      passed: 94,
      failed: 0,
    }],
    ["ok | 1 passed | 0 failed\nFAILED | 10 passed (3 steps) | 2 failed (1 step) (1s)\n", { passed: 10, failed: 2 }],
    ["error: Module not found\n", undefined],
  ];
  for (const [output, counts] of cases) assertEquals(readCounts(output), counts);
});

Deno.test("every path of the test groups exists, and test:all runs all files", async () => {
  for (const path of [...Object.values(LEFT_OUT).flat(), ...ALONE]) {
    assertEquals([path, (await Deno.stat(ROOT + path)).isDirectory], [path, path.endsWith("/")]);
  }
  const ofAll = groupsOf(true).flatMap(({ files }) => files);
  assertEquals(ofAll.length, new Set(ofAll).size);
  for (const path of ["tests/tools/test_groups_test.ts", "tests/clients/wire_test.ts", "tools/wasm/write_test.ts"]) {
    assert(ofAll.includes(path), path);
  }
  const leftOut = Object.values(LEFT_OUT).flat();
  for (const path of [...leftOut, ...ALONE]) assert(ofAll.some((file) => file.startsWith(path)), path);
  const quick = groupsOf(false).flatMap(({ files }) => files);
  assertEquals(quick, ofAll.filter((file) => !leftOut.some((place) => file.startsWith(place))));
});

Deno.test("deno task heavy has all random cases of which the other commands have a share", async () => {
  const list = await Deno.readTextFile(`${ROOT}tests/heavy/random_cases_test.ts`);
  // The rounds of fuzzing are those of its own heavy suite, the limiter's behaviours are imported by its tests.
  const others = ["tests/fuzz/fuzz_test.ts", "tests/tools/test_groups_test.ts"];
  const drawn = (await readSources("tests")).filter(({ path, text }) =>
    /\brounds\(/.test(text) && path.endsWith("_test.ts") && !path.startsWith("tests/heavy/") && !others.includes(path)
  );
  const missing = drawn.filter(({ path }) => !list.includes(`"../${path.slice("tests/".length)}"`));
  assertEquals(missing.map(({ path }) => path), []);
});

Deno.test("runDenoTest() interrupts a run without output, and Deno names the pending test", {
  ignore: skipInQuick("Ten seconds without output"),
}, async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/waiting_test.ts`;
    await Deno.writeTextFile(
      path,
      'Deno.test("passes", () => {});\nDeno.test("waits", () => new Promise((done) => setTimeout(done, 3_600_000)));\n',
    );
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    const counts = await runDenoTest(["--no-check", path], {
      env: { NO_COLOR: "1" },
      write: (chunk) => void chunks.push(chunk.slice()),
      maxSilenceMs: 10_000,
    });
    assertEquals(counts, { passed: 0, failed: 1 });
    assertMatch(await new Blob(chunks).text(), /pending:\s+waits => .*waiting_test\.ts:2:6/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
