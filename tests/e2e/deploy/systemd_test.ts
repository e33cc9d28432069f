import { assertEquals, assertMatch } from "@std/assert";
import { configSchema } from "../../../lib/config.ts";
import { inFolder, run } from "../../support/program.ts";
import { isInstalled } from "./programs.ts";

const FOLDER = new URL("../../../deploy/systemd/", import.meta.url);
const text = await Deno.readTextFile(new URL("sluice.service", FOLDER));
const template = await Deno.readTextFile(new URL("sluice@.service", FOLDER));
const test = !isInstalled("systemd-analyze") ? Deno.test.ignore : Deno.test;

/** The units, by the names of files that systemd can start. */
const UNITS = [["sluice.service", text], ["sluice@8801.service", template]] as const;

/** Maximum exposure that `systemd-analyze security` may report, in tenths: 100 is the worst. */
const MAX_EXPOSURE = 20;

/** Has systemd analyze a unit, with a program in it that exists here. */
async function analyze(
  [name, unit]: readonly [name: string, unit: string],
  ...args: string[]
): Promise<{ code: number; output: string }> {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/${name}`;
    await Deno.writeTextFile(path, unit.replaceAll("/usr/local/bin/sluice", "/bin/true"));
    const { code, stdout, stderr } = await new Deno.Command("systemd-analyze", { args: [...args, path] }).output();
    return { code, output: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

test("systemd accepts every line of the units", async () => {
  for (const unit of UNITS) assertEquals(await analyze(unit, "verify", "--man=no"), { code: 0, output: "" });
});

test("the unit grants few permissions", async () => {
  const { code, output } = await analyze(
    UNITS[0],
    "security",
    "--offline=true",
    "--no-pager",
    `--threshold=${MAX_EXPOSURE}`,
  );
  assertEquals(code, 0, output);
});

Deno.test("the unit's stop timeout exceeds the drain time", () => {
  const { shutdown } = configSchema.parse({});
  const [, seconds = "0"] = /^TimeoutStopSec=(\d+)s$/m.exec(text) ?? [];
  const most = Math.max(shutdown.drain_seconds, shutdown.images_drain_seconds) + shutdown.ready_delay_ms / 1000;
  assertEquals(Number(seconds) >= most + 30, true);
  assertMatch(text, /^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
});

Deno.test("systemd starts the gateway again until it succeeds, however long a database is away", () => {
  for (const [, unit] of UNITS) {
    assertMatch(unit, /^StartLimitIntervalSec=0$/m);
    assertMatch(unit, /^Restart=on-failure$/m);
  }
});

Deno.test("the template differs from the unit only in per-process settings", () => {
  const settings = (unit: string) => unit.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const [one, each] = [settings(text), settings(template)];
  assertEquals(each.filter((line) => !one.includes(line)), [
    "Description=Sluice, a gateway for language and image models, process %i",
    "ExecStart=/usr/local/bin/sluice serve --config /etc/sluice/sluice.jsonc --admin-port %i",
    "WorkingDirectory=/var/lib/sluice/%i",
    "StateDirectory=sluice/%i",
  ]);
  assertEquals(each.length, one.length);
});

Deno.test("a reload proceeds for a file with warnings, and stops for an invalid one", () =>
  inFolder(async (folder) => {
    for (const [, unit] of UNITS) {
      const [, words = ""] = /^ExecReload=\/usr\/local\/bin\/sluice (check .*)$/m.exec(unit) ?? [];
      const args = words.replace("/etc/sluice/", "").split(" ");
      await Deno.writeTextFile(`${folder}/sluice.jsonc`, '{ "groups": { "team": { "models": ["none/*"] } } }');
      const warned = await run(args, { folder });
      assertEquals([warned.code, /Warnings \(1\)/.test(warned.out)], [0, true], warned.out + warned.err);
      await Deno.writeTextFile(`${folder}/sluice.jsonc`, '{ "group": {} }');
      assertEquals((await run(args, { folder })).code, 1);
    }
  }));
