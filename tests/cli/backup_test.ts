import { assertEquals, assertStringIncludes } from "@std/assert";
import { startBilled } from "./billed_gateway.ts";
import { type ShownCommand, shownCommands } from "../support/documents.ts";
import { inFolder, reuseGateways, reuseProcess, run, start, startReused } from "../support/program.ts";
import { findProgram, skipIf, skipInQuick } from "../support/skip.ts";

reuseProcess();
reuseGateways();

const ROOT = new URL("../../", import.meta.url).pathname;

/** Runs the commands of a document, and compares their output except for numbers. */
async function follow(commands: readonly ShownCommand[], folder: string): Promise<void> {
  for (const { command, output } of commands) {
    const { code, stdout, stderr } = await new Deno.Command("sh", {
      args: ["-c", command],
      cwd: folder,
      env: { PATH: `${folder}/bin:${Deno.env.get("PATH")}` },
    }).output();
    const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
    assertEquals([code, err], [0, ""], command);
    assertEquals(out?.replaceAll(/\d+/g, "N"), output.replaceAll(/\d+/g, "N"), command);
  }
}

/** Makes `sluice` a command. */
async function install(folder: string): Promise<void> {
  await Deno.mkdir(`${folder}/bin`);
  const program = `run --quiet --no-check --no-prompt -A --config '${ROOT}deno.json' '${ROOT}main.ts'`;
  await Deno.writeTextFile(`${folder}/bin/sluice`, `#!/bin/sh\nexec '${Deno.execPath()}' ${program} "$@"\n`, {
    mode: 0o755,
  });
}

Deno.test({
  name: "backup and restore work as documented in docs/how-to/backup.md",
  ignore: Deno.build.os === "windows" || skipIf(findProgram("sh") === undefined, "sh is not installed") ||
    skipInQuick("Commands of the documentation"),
  fn: () =>
    inFolder(async (folder) => {
      await install(folder);
      const [copying = [], restoring = [], ...more] = shownCommands("docs/how-to/backup.md");
      assertEquals([copying.length, restoring.length, more], [2, 4, []]);

      const gateway = await startBilled(folder, start);
      const before = await gateway.ask();
      await follow(copying, folder);
      const bill = await run(["usage", "--since", "1d", "--json", "--until", "2126-01-01"], { folder });
      const after = await gateway.ask();
      // As after a crash: the last writes are in the log beside the file.
      gateway.kill("SIGKILL");
      await gateway.ended;

      await follow(restoring, folder);
      assertEquals(((await Deno.stat(`${folder}/data/sluice.db`)).mode ?? 0) & 0o777, 0o600);
      const restored = await startReused([], { folder });
      assertStringIncludes(restored.banner, 'API key "ci" exists since');
      assertEquals((await run(["explain", before], { folder })).code, 0);
      assertEquals((await run(["explain", after], { folder })).code, 1);
      const again = await run(["usage", "--since", "1d", "--json", "--until", "2126-01-01"], { folder });
      assertEquals(JSON.parse(again.out).lines, JSON.parse(bill.out).lines);
      restored.kill("SIGTERM");
      await restored.ended;
    }),
});

Deno.test("backup never overwrites a file, and requires a store", () =>
  inFolder(async (folder) => {
    const missing = await run(["backup", "copy.db"], { folder });
    assertEquals([missing.code, missing.err], [
      1,
      'Cannot read the store "./data/sluice.db": there is no such file; start the gateway once, or set --config or --store\n',
    ]);
    assertEquals((await run(["keys", "add", "ci"], { folder })).code, 0);
    await Deno.writeTextFile(`${folder}/copy.db`, "mine");
    const refused = await run(["backup", "copy.db"], { folder });
    assertEquals([refused.code, refused.out, refused.err.split("\n").length], [1, "", 2]);
    assertStringIncludes(refused.err, 'Cannot copy the store "./data/sluice.db" to "copy.db"');
    assertEquals(await Deno.readTextFile(`${folder}/copy.db`), "mine");
    assertEquals((await run(["backup"], { folder })).code, 2);
  }));

Deno.test("backup names the tool for a database, without its password, and writes nothing", () =>
  inFolder(async (folder) => {
    const env = { SLUICE_STORE: "postgres://sluice:hunter2@db.example/sluice" };
    const { code, out, err } = await run(["backup", "copy.db"], { folder, env });
    assertEquals([code, out], [1, ""]);
    assertEquals(
      err,
      'Cannot copy the store "postgres://sluice@db.example/sluice": it is a database; use pg_dump, which works while gateways ' +
        "run\n",
    );
    assertEquals(await Array.fromAsync(Deno.readDir(folder)), []);
  }));
