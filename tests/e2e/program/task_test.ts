import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { inFolder } from "../../support/program.ts";

Deno.test("deno task start serves with the permissions it grants, and exits cleanly", () =>
  inFolder(async (folder) => {
    // The task runs in the repository, so nothing of this run may be kept there.
    await Deno.writeTextFile(`${folder}/empty.jsonc`, "{}");
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        "task",
        "start",
        "--port",
        "0",
        "--store",
        `sqlite:${folder}/keys.db`,
        "--config",
        `${folder}/empty.jsonc`,
      ],
      cwd: `${import.meta.dirname}/../../..`,
      env: { SLUICE_CONFIG: "", SLUICE_PORT: "", SLUICE_HOSTNAME: "", SLUICE_STORE: "", NO_COLOR: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const err = new Response(child.stderr).text();
    const out = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let banner = "";
    for (let read = await out.read(); !read.done; read = await out.read()) {
      banner += read.value;
      if (/Add a key: .*\n/.test(banner)) break;
    }
    const [, origin] = /listens on (\S+)/.exec(banner) ?? [];
    const health = await fetch(`${origin}/healthz`);
    await health.body?.cancel();
    assertEquals(health.status, 200, banner);

    child.kill("SIGTERM");
    for (let read = await out.read(); !read.done; read = await out.read());
    const { code } = await child.status;
    const log = await err;
    assertEquals(code, 0, log);
    assertStringIncludes(log, '"outcome":"drained"');
    assertMatch(banner, /^Sluice listens on http:\/\/127\.0\.0\.1:\d+\n/);
  }));
