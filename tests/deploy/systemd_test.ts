import { assertEquals, assertMatch } from "@std/assert";
import { configSchema } from "../../lib/config.ts";
import { isInstalled } from "./programs.ts";

const UNIT = new URL("../../deploy/systemd/sluice.service", import.meta.url);
const text = await Deno.readTextFile(UNIT);
const ignore = !await isInstalled("systemd-analyze");

/** Most that `systemd-analyze security` may find open, in tenths: 100 is everything. */
const MOST_EXPOSURE = 20;

/** Runs a look at the unit, with a program in it that exists here. */
async function analyze(...args: string[]): Promise<{ code: number; said: string }> {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/sluice.service`;
    await Deno.writeTextFile(path, text.replaceAll("/usr/local/bin/sluice", "/bin/true"));
    const { code, stdout, stderr } = await new Deno.Command("systemd-analyze", { args: [...args, path] }).output();
    return { code, said: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test({
  name: "systemd understands every line of the unit",
  ignore,
  async fn() {
    assertEquals(await analyze("verify", "--man=no"), { code: 0, said: "" });
  },
});

Deno.test({
  name: "the unit leaves little open",
  ignore,
  async fn() {
    const { code, said } = await analyze("security", "--offline=true", "--no-pager", `--threshold=${MOST_EXPOSURE}`);
    assertEquals(code, 0, said);
  },
});

Deno.test("the unit waits longer for the end than the gateway takes for it", () => {
  const { shutdown } = configSchema.parse({});
  const [, seconds = "0"] = /^TimeoutStopSec=(\d+)s$/m.exec(text) ?? [];
  const most = Math.max(shutdown.drain_seconds, shutdown.images_drain_seconds) + shutdown.ready_delay_ms / 1000;
  assertEquals(Number(seconds) >= most + 30, true);
  assertMatch(text, /^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
});
