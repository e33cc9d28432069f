import { assertEquals, assertStringIncludes } from "@std/assert";
import denoJson from "../../deno.json" with { type: "json" };
import { BASE_PATH, missingBase } from "../../tools/compile_base.ts";
import { inFolder } from "../support/program.ts";

const [, ifItFails = ""] = denoJson.tasks.compile.command.split(" || ");

/** Error message after a failed compilation with this Deno folder. */
async function afterFailure(denoDir: string, env: Record<string, string> = {}): Promise<{ code: number; err: string }> {
  const [given, deno, ...args] = ifItFails.split(/ \| | /).slice(2);
  assertEquals([given, deno], ["--json", "deno"]);
  const child = new Deno.Command(Deno.execPath(), {
    args,
    cwd: `${import.meta.dirname}/../..`,
    env: { NO_COLOR: "1", DENORT_BIN: "", ...env },
    stdin: "piped",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(JSON.stringify({ denoDir })));
  await writer.close();
  const { code, stderr } = await child.output();
  return { code, err: new TextDecoder().decode(stderr) };
}

Deno.test("a compilation without the base executable fails with advice in one sentence", () =>
  inFolder(async (folder) => {
    const missing = await afterFailure(folder);
    assertEquals([missing.code, missing.err.trim().split("\n").length], [1, 1]);
    assertStringIncludes(missing.err, "Cannot compile: Deno could not fetch the base of executables");
    assertStringIncludes(missing.err, `https://dl.deno.land/release/v${Deno.version.deno}/denort-`);
    const named = await afterFailure(folder, { DENORT_BIN: `${folder}/denort` });
    assertEquals([named.code, named.err.trim()], [
      1,
      `Cannot compile: DENORT_BIN names "${folder}/denort", which is not there`,
    ]);
    // If the base exists, the earlier error is the reason.
    await Deno.mkdir(`${folder}/${BASE_PATH}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeTextFile(`${folder}/${BASE_PATH}`, "");
    assertEquals(await missingBase(folder, undefined), undefined);
    assertEquals(await afterFailure(folder), { code: 1, err: "" });
  }));

Deno.test("shell patterns are quoted in the compile task", () => {
  const bare = denoJson.tasks.compile.command.replace(/'[^']*'/g, "''").replace(/\$\([^)]*\)/, "");
  assertEquals(bare.match(/[[\]*?{}~]/g), null);
});
